// SPDX-License-Identifier: Apache-2.0
#include "predict/equitable_partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

namespace stepcast {
namespace {

using Classes = std::vector<std::int32_t>;

struct Edge {
  std::size_t a;
  std::size_t b;
  std::uint64_t label = 0;
};

WeightedGraph graph_of(std::vector<std::uint64_t> colour, const std::vector<Edge>& edges) {
  WeightedGraph graph;
  graph.colour = std::move(colour);
  std::vector<std::vector<std::pair<std::size_t, std::uint64_t>>> rows(graph.colour.size());
  for (const Edge& edge : edges) {
    rows[edge.a].emplace_back(edge.b, edge.label);
    rows[edge.b].emplace_back(edge.a, edge.label);
  }
  graph.begin.push_back(0);
  for (const auto& row : rows) {
    for (const auto& [neighbour, label] : row) {
      graph.neighbour.push_back(static_cast<std::int32_t>(neighbour));
      graph.label.push_back(label);
      graph.seen.push_back(1);
    }
    graph.begin.push_back(static_cast<std::int32_t>(graph.neighbour.size()));
  }
  return graph;
}

TEST(WeightedGraph, HasEachEdgeInTheRowsOfBothEnds) {
  // 0 - 1 (label 7), 1 - 2 (label 8), and a loop at 2 (label 9), which stands there twice.
  const WeightedGraph graph = weighted_graph({5, 6, 5}, {{0, 1, 7}, {1, 2, 8}, {2, 2, 9}});
  EXPECT_EQ(graph.colour, (std::vector<std::uint64_t>{5, 6, 5}));
  EXPECT_EQ(graph.begin, (Classes{0, 1, 3, 6}));
  EXPECT_EQ(graph.neighbour, (Classes{1, 0, 2, 1, 2, 2}));
  EXPECT_EQ(graph.label, (std::vector<std::uint64_t>{7, 7, 8, 8, 9, 9}));
}

std::vector<std::uint64_t> plain(std::size_t vertices) {
  return std::vector<std::uint64_t>(vertices, 0);
}

std::vector<Edge> cycle_edges(std::size_t vertices) {
  std::vector<Edge> edges;
  for (std::size_t v = 0; v < vertices; ++v) edges.push_back({v, (v + 1) % vertices});
  return edges;
}

TEST(EquitablePartition, OfNoVerticesIsEmpty) {
  EXPECT_TRUE(equitable_partition(graph_of({}, {})).empty());
}

TEST(EquitablePartition, OfAPathPairsVerticesAtEqualDistanceFromTheEnds) {
  EXPECT_EQ(equitable_partition(graph_of(plain(5), {{0, 1}, {1, 2}, {2, 3}, {3, 4}})),
            (Classes{0, 1, 2, 1, 0}));
}

TEST(EquitablePartition, OfACycleIsOneClass) {
  EXPECT_EQ(equitable_partition(graph_of(plain(6), cycle_edges(6))), Classes(6, 0));
}

TEST(EquitablePartition, OfRegularGraphsIsOneClassEvenWhereTheyAreNotAlike) {
  // A triangle twice beside a cycle of six: all of degree 2. Equitable is weaker than symmetric,
  // and it is enough: a fluid network cannot tell them apart either.
  std::vector<Edge> edges = cycle_edges(6);
  edges.insert(edges.end(), {{6, 7}, {7, 8}, {8, 6}, {9, 10}, {10, 11}, {11, 9}});
  EXPECT_EQ(equitable_partition(graph_of(plain(12), edges)), Classes(12, 0));
}

TEST(EquitablePartition, OneColouredVertexOfACycleSplitsItByDistance) {
  std::vector<std::uint64_t> colour = plain(6);
  colour[2] = 7;
  EXPECT_EQ(equitable_partition(graph_of(colour, cycle_edges(6))), (Classes{0, 1, 2, 1, 0, 3}));
}

TEST(EquitablePartition, LabelsTellEdgesApart) {
  // A cycle of four with labels 1, 1, 2, 2: vertices between 1|1, 1|2 and 2|2.
  EXPECT_EQ(equitable_partition(graph_of(plain(4), {{0, 1, 1}, {1, 2, 1}, {2, 3, 2}, {3, 0, 2}})),
            (Classes{0, 1, 0, 2}));
}

TEST(EquitablePartition, OneSlowLinkOfAClusterSplitsOnlyWhatItTouches) {
  // Four nodes of two GPUs, a switch above them; the link of node 0 is slow.
  std::vector<std::uint64_t> colour = plain(13);
  std::vector<Edge> edges;
  for (std::size_t node = 0; node < 4; ++node) {
    colour[8 + node] = 1;
    edges.push_back({2 * node, 8 + node, 0});
    edges.push_back({2 * node + 1, 8 + node, 0});
    edges.push_back({8 + node, 12, node == 0 ? 1U : 2U});
  }
  colour[12] = 2;
  EXPECT_EQ(equitable_partition(graph_of(colour, edges)),
            (Classes{0, 0, 1, 1, 1, 1, 1, 1, 2, 3, 3, 3, 4}));
}

TEST(EquitablePartition, ParallelEdgesAndLoopsCount) {
  EXPECT_EQ(equitable_partition(graph_of(plain(4), {{0, 1}, {0, 1}, {2, 3}})),
            (Classes{0, 0, 1, 1}));
  EXPECT_EQ(equitable_partition(graph_of(plain(2), {{0, 0}})), (Classes{0, 1}));
}

// How often each vertex meets each (label, class).
using Degrees = std::map<std::pair<std::uint64_t, std::int32_t>, int>;
Degrees degrees(const WeightedGraph& graph, const Classes& classes, std::size_t vertex) {
  Degrees result;
  for (auto e = static_cast<std::size_t>(graph.begin[vertex]);
       e < static_cast<std::size_t>(graph.begin[vertex + 1]); ++e) {
    ++result[{graph.label[e], classes[static_cast<std::size_t>(graph.neighbour[e])]}];
  }
  return result;
}

// Splits all classes by colour and exact degrees until nothing changes.
Classes refine_naively(const WeightedGraph& graph) {
  Classes classes(graph.colour.size(), 0);
  for (std::size_t count = 0;;) {
    std::map<std::tuple<std::uint64_t, std::int32_t, Degrees>, std::int32_t> known;
    Classes next;
    for (std::size_t v = 0; v < classes.size(); ++v) {
      const auto id = static_cast<std::int32_t>(known.size());
      const auto key = std::tuple(graph.colour[v], classes[v], degrees(graph, classes, v));
      next.push_back(known.try_emplace(key, id).first->second);
    }
    if (known.size() == count) return next;
    count = known.size();
    classes = next;
  }
}

WeightedGraph random_graph(std::mt19937_64& random) {
  const std::size_t vertices = 1 + random() % 40;
  std::vector<std::uint64_t> colour;
  for (std::size_t v = 0; v < vertices; ++v) colour.push_back(random() % 8 == 0 ? 1 : 0);
  std::vector<Edge> edges;
  if (random() % 2 == 0) {  // a ring with few chords: long chains of refinement
    edges = cycle_edges(vertices);
    for (int i = 0; i < 2; ++i) edges.push_back({random() % vertices, random() % vertices});
  } else {
    for (std::size_t i = 0; i < 2 * vertices; ++i) {
      edges.push_back({random() % vertices, random() % vertices, random() % 2});
    }
  }
  return graph_of(colour, edges);
}

TEST(EquitablePartition, OfRandomGraphsIsTheNaiveRefinement) {
  std::mt19937_64 random(21);
  for (int trial = 0; trial < 1000; ++trial) {
    const WeightedGraph graph = random_graph(random);
    ASSERT_EQ(equitable_partition(graph), refine_naively(graph)) << "trial " << trial;
  }
}

TEST(EquitablePartition, EveryClassHasEqualDegreesIntoEveryClass) {
  std::mt19937_64 random(22);
  for (int trial = 0; trial < 300; ++trial) {
    const WeightedGraph graph = random_graph(random);
    const Classes classes = equitable_partition(graph);
    std::map<std::int32_t, std::pair<std::uint64_t, Degrees>> of_class;
    for (std::size_t v = 0; v < classes.size(); ++v) {
      const auto expected = std::pair(graph.colour[v], degrees(graph, classes, v));
      ASSERT_EQ(of_class.try_emplace(classes[v], expected).first->second, expected);
    }
  }
}

TEST(EquitablePartition, DoesNotDependOnTheNumbersOfTheVertices) {
  std::mt19937_64 random(23);
  for (int trial = 0; trial < 300; ++trial) {
    const WeightedGraph graph = random_graph(random);
    std::vector<std::size_t> moved(graph.colour.size());
    std::iota(moved.begin(), moved.end(), std::size_t{0});
    std::shuffle(moved.begin(), moved.end(), random);
    std::vector<std::uint64_t> colour(moved.size());
    std::vector<Edge> edges;
    for (std::size_t v = 0; v < moved.size(); ++v) {
      colour[moved[v]] = graph.colour[v];
      bool is_second_end_of_loop = false;
      for (auto e = static_cast<std::size_t>(graph.begin[v]);
           e < static_cast<std::size_t>(graph.begin[v + 1]); ++e) {
        const auto other = static_cast<std::size_t>(graph.neighbour[e]);
        if (other == v) is_second_end_of_loop = !is_second_end_of_loop;
        if (other > v || (other == v && is_second_end_of_loop)) {
          edges.push_back({moved[v], moved[other], graph.label[e]});
        }
      }
    }
    const Classes classes = equitable_partition(graph);
    const Classes permuted = equitable_partition(graph_of(colour, edges));
    std::set<std::pair<std::int32_t, std::int32_t>> pairs;
    for (std::size_t v = 0; v < moved.size(); ++v) pairs.insert({classes[v], permuted[moved[v]]});
    const auto count = static_cast<std::size_t>(*std::max_element(classes.begin(), classes.end()));
    ASSERT_EQ(pairs.size(), count + 1) << "trial " << trial;  // one to one
  }
}

TEST(EquitablePartition, OfALargeSymmetricClusterHasAFewClasses) {
  // 16,384 nodes of 8 GPUs, each GPU with a NIC, rail-optimised: NIC i of all nodes on rail i.
  constexpr std::size_t kNodes = 16'384;
  constexpr std::size_t kGpus = 8 * kNodes;
  std::vector<std::uint64_t> colour(2 * kGpus + kNodes + 8, 0);
  std::vector<Edge> edges;
  for (std::size_t g = 0; g < kGpus; ++g) {
    colour[kGpus + g] = 1;
    edges.push_back({g, kGpus + g, 400});
    edges.push_back({g, 2 * kGpus + g / 8, 900});
    edges.push_back({kGpus + g, 2 * kGpus + kNodes + g % 8, 400});
  }
  for (std::size_t node = 0; node < kNodes; ++node) colour[2 * kGpus + node] = 2;
  for (std::size_t rail = 0; rail < 8; ++rail) colour[2 * kGpus + kNodes + rail] = 3;
  const Classes classes = equitable_partition(graph_of(colour, edges));
  EXPECT_EQ(*std::max_element(classes.begin(), classes.end()), 3);
}

// A cycle of six as two orbits of three, each vertex between two of the other orbit, beside one of
// eight as two of four: the quotient has the classes of the whole.
TEST(EquitablePartition, OfVerticesThatStandForSeveralIsThatOfAllOfThem) {
  const auto quotient = [](double first, double second) {
    return equitable_partition(
        weighted_graph({0, 0, 0, 0}, {{0, 1, 7, first, first}, {2, 3, 7, second, second}}));
  };
  EXPECT_EQ(quotient(2, 2), (Classes{0, 0, 0, 0}));
  EXPECT_EQ(quotient(2, 3), (Classes{0, 0, 1, 1}));
  // Four leaves on each of two hubs: a hub has four edges, a leaf one.
  EXPECT_EQ(equitable_partition(weighted_graph({0, 0}, {{0, 1, 7, 4, 1}})), (Classes{0, 1}));
  EXPECT_EQ(equitable_partition(weighted_graph({0, 0}, {{0, 1, 7, 4, 4}})), (Classes{0, 0}));
}

}  // namespace
}  // namespace stepcast
