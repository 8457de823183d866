// SPDX-License-Identifier: Apache-2.0
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <map>
#include <random>
#include <set>

#include "tests/cluster/cluster_from.h"

namespace stepcast {
namespace {

using testing::cluster_from;

// The names of the vertices that a path visits, in order; only for single paths.
std::string visited(const Topology& graph, int from, int to) {
  std::map<VertexId, VertexId> next;
  for (const LinkShare& share : graph.route(DeviceId(from), DeviceId(to))) {
    EXPECT_DOUBLE_EQ(share.fraction, 1);
    const Link& link = graph.links()[share.link.index()];
    next[link.from] = link.to;
  }
  VertexId at = graph.gpus()[static_cast<std::size_t>(from)];
  std::string out = graph.name(at);
  while (next.contains(at)) {
    at = next[at];
    out += " " + graph.name(at);
  }
  return out;
}

// Kirchhoff: one unit leaves `from`, one arrives at `to`, and every other vertex passes on what it
// gets. With it the fractions of any cut sum to 1.
void expect_unit_flow(const Topology& graph, DeviceId from, DeviceId to) {
  std::map<VertexId, double> balance;
  for (const LinkShare& share : graph.route(from, to)) {
    const Link& link = graph.links()[share.link.index()];
    EXPECT_GT(share.fraction, 0);
    balance[link.from] += share.fraction;
    balance[link.to] -= share.fraction;
  }
  balance[graph.gpus()[from.index()]] -= 1;
  balance[graph.gpus()[to.index()]] += 1;
  for (const auto& [vertex, sum] : balance) EXPECT_NEAR(sum, 0, 1e-12) << graph.name(vertex);
}

TEST(Route, InsideANodeGoesOverTheSwitchPlane) {
  const Topology graph = cluster_from("\"dgx-h100x2\"").topology;
  EXPECT_EQ(visited(graph, 0, 7), "node0/gpu0 node0/nvswitch0 node0/gpu7");
  EXPECT_EQ(visited(graph, 15, 8), "node1/gpu7 node1/nvswitch0 node1/gpu0");
}

TEST(Route, PrefersNvlinkToASharedPcieSwitch) {
  const Topology graph = cluster_from(R"({"base": "dgx-a100-80g", "nics_per_node": 4})").topology;
  EXPECT_EQ(visited(graph, 0, 1), "node0/gpu0 node0/nvswitch0 node0/gpu1");
}

TEST(Route, TheSameRailIsOneLeafAway) {
  const Topology graph = cluster_from("\"dgx-h100x2\"").topology;
  EXPECT_EQ(visited(graph, 3, 11),
            "node0/gpu3 node0/pcie3 node0/nic3 leaf3 node1/nic3 node1/pcie3 node1/gpu3");
}

TEST(Route, AcrossRailsCrossesTheSpineAndNoHost) {
  const Topology graph = cluster_from("\"dgx-h100x2\"").topology;
  EXPECT_EQ(visited(graph, 0, 9),
            "node0/gpu0 node0/pcie0 node0/nic0 leaf0 spine0 leaf1 node1/nic1 node1/pcie1 "
            "node1/gpu1");
}

TEST(Route, AcrossLeafGroupsCrossesTheSpine) {
  const Topology graph = cluster_from("\"dgx-h100x64\"").topology;
  EXPECT_EQ(visited(graph, 0, 32 * 8),
            "node0/gpu0 node0/pcie0 node0/nic0 leaf0 spine0 leaf8 node32/nic0 node32/pcie0 "
            "node32/gpu0");
}

TEST(Route, AcrossPodsCrossesTheCore) {
  const Topology graph =
      cluster_from(R"({"base": "dgx-h100", "nodes": 64, "pod_nodes": 32})").topology;
  EXPECT_EQ(visited(graph, 0, 32 * 8),
            "node0/gpu0 node0/pcie0 node0/nic0 leaf0 spine0 core0 spine1 leaf8 node32/nic0 "
            "node32/pcie0 node32/gpu0");
}

TEST(Route, TwoGpusShareTheirNic) {
  const Topology graph =
      cluster_from(R"({"base": "dgx-a100-80g", "nodes": 2, "nics_per_node": 4})").topology;
  EXPECT_EQ(visited(graph, 5, 13),
            "node0/gpu5 node0/pcie2 node0/nic2 leaf2 node1/nic2 node1/pcie2 node1/gpu5");
}

// 32 NICs on 8 GPUs: 4 each, behind one leaf; each takes a quarter on either side.
TEST(Route, AGpuWithFourNicsUsesAQuarterOfItOnEach) {
  const Topology graph = cluster_from("\"aws-p5x2\"").topology;
  int nics = 0;
  for (const LinkShare& share : graph.route(DeviceId(0), DeviceId(8))) {
    const Link& link = graph.links()[share.link.index()];
    if (link.kind != LinkKind::kNic) continue;
    EXPECT_DOUBLE_EQ(share.fraction, 0.25);
    ++nics;
  }
  EXPECT_EQ(nics, 8);
  expect_unit_flow(graph, DeviceId(0), DeviceId(8));
}

TEST(Route, AnNvlinkDomainOfSeveralNodesNeedsNoNetwork) {
  const Topology graph = cluster_from("\"gb200-nvl72x36\"").topology;
  EXPECT_EQ(visited(graph, 0, 71), "node0/gpu0 nvswitch0 node17/gpu3");
  EXPECT_NE(visited(graph, 0, 72).find("leaf"), std::string::npos);
}

TEST(Route, WithoutNvlinkStaysBelowTheNearestPcieSwitch) {
  const Topology graph = cluster_from("\"a100-pcie-8x2\"").topology;
  EXPECT_EQ(visited(graph, 0, 3), "node0/gpu0 node0/pcie0 node0/gpu3");
  EXPECT_EQ(visited(graph, 0, 4), "node0/gpu0 node0/pcie0 node0/host0 node0/pcie1 node0/gpu4");
}

// The only NIC hangs on the first PCIe switch: the last GPU reaches it over the host bridge.
TEST(Route, CrossesAHostBridgeOnlyToReachANic) {
  const Topology graph = cluster_from("\"a100-pcie-8x2\"").topology;
  EXPECT_EQ(visited(graph, 7, 8),
            "node0/gpu7 node0/pcie1 node0/host0 node0/pcie0 node0/nic0 leaf0 node1/nic0 "
            "node1/pcie0 node1/gpu0");
}

TEST(Route, FromAGpuToItselfIsEmpty) {
  EXPECT_TRUE(cluster_from("\"dgx-h100\"").topology.route(DeviceId(3), DeviceId(3)).empty());
}

// NVLink hop 0.6 us in two halves; NIC to NIC 1.2 us; leaf - spine - leaf adds two switches.
TEST(Route, LatencyIsTheSumAlongThePath) {
  const Topology graph = cluster_from("\"dgx-h100x2\"").topology;
  EXPECT_NEAR(graph.latency(DeviceId(0), DeviceId(1)).value(), 0.6e-6, 1e-15);
  EXPECT_NEAR(graph.latency(DeviceId(0), DeviceId(8)).value(), 1.2e-6, 1e-15);
  EXPECT_NEAR(graph.latency(DeviceId(0), DeviceId(9)).value(), 1.2e-6 + 2 * 0.15e-6, 1e-15);
}

TEST(Route, TheRingOfSixteenThousandGpusIsAUnitFlowOnEachEdge) {
  const Topology graph = cluster_from("\"meta-24k-roce\"").topology;
  double hops = 0;
  const auto n = static_cast<std::int32_t>(graph.gpus().size());
  for (std::int32_t i = 0; i < n; ++i) {
    for (const LinkShare& share : graph.route(DeviceId(i), DeviceId((i + 1) % n))) {
      hops += share.fraction;
    }
  }
  // 3,072 nodes: 7 hops of 2 links inside each; between nodes 6 links under the same leaf (half of
  // the edges), 8 across the spine, 10 across the core (8 pods), the ring closed.
  EXPECT_NEAR(hops, 3072 * 7 * 2 + 1536 * 6 + (1536 - 8) * 8 + 8 * 10, 1e-6);
}

// A random graph of GPUs and switches, half of which stand beside a GPU. Nodes of even seeds meet
// at the other switches alone, as those of most clusters do. The oracle is Boost's breadth-first
// search over the same graph with every GPU but the two ends taken out, and where nodes meet at
// switches alone the nodes of the other GPUs with them, and counting paths over its distances.
class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : random_(seed) {
    const int gpus = 2 + pick(6);
    const int switches = 1 + pick(12);
    for (int i = 0; i < gpus; ++i) graph_.add_vertex({VertexKind::kGpu, i, 0});
    for (int i = 0; i < switches; ++i) {
      const int node = pick(2) == 0 ? pick(gpus) : -1;
      graph_.add_vertex({VertexKind::kLeaf, node, i});
    }
    const auto node_of = [&](int v) { return graph_.vertices()[VertexId(v).index()].node; };
    const int cables = 1 + pick(3 * (gpus + switches));
    std::set<std::pair<int, int>> used;
    for (int i = 0; i < cables; ++i) {
      const int a = pick(gpus + switches);
      const int b = pick(gpus + switches);
      const bool joins_nodes = node_of(a) >= 0 && node_of(b) >= 0 && node_of(a) != node_of(b);
      if (seed % 2 == 0 && joins_nodes) continue;
      if (a == b || !used.emplace(std::min(a, b), std::max(a, b)).second) continue;
      graph_.add_cable({VertexId(a), VertexId(b), LinkKind::kFabric, BytesPerSecond(1), {}});
    }
  }

  const Topology& graph() const { return graph_; }

  // Past switches alone a way leads on into the other end's node, and from its own one to them.
  bool leads_on(const Link& link, DeviceId origin, DeviceId other) const {
    const auto node_of = [&](VertexId v) { return graph_.vertices()[v.index()].node; };
    const std::int32_t from = node_of(link.from), to = node_of(link.to);
    if (graph_.joins_nodes() || from == to) return true;
    return from < 0 ? to == node_of(graph_.gpus()[other.index()])
                    : to < 0 && from == node_of(graph_.gpus()[origin.index()]);
  }

  // Distances from `origin` that pass no GPU but the two ends; -1 where there is no path.
  std::vector<int> distances(DeviceId origin, DeviceId other) const {
    using Oracle = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;
    const std::size_t n = graph_.vertices().size();
    Oracle oracle(n);
    const VertexId one = graph_.gpus()[origin.index()], end = graph_.gpus()[other.index()];
    const auto open = [&](VertexId v) {
      return graph_.vertices()[v.index()].kind != VertexKind::kGpu || v == one || v == end;
    };
    for (const Link& link : graph_.links()) {
      if (open(link.from) && open(link.to) && leads_on(link, origin, other)) {
        boost::add_edge(link.from.index(), link.to.index(), oracle);
      }
    }
    std::vector<int> out(n, -1);
    const std::size_t start = graph_.gpus()[origin.index()].index();
    out[start] = 0;
    boost::breadth_first_search(oracle, start,
                                boost::visitor(boost::make_bfs_visitor(
                                    boost::record_distances(out.data(), boost::on_tree_edge()))));
    return out;
  }

 private:
  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }

  std::mt19937 random_;
  Topology graph_;
};

TEST(Route, AgreesWithBoostOnRandomGraphs) {
  int routes = 0;
  int split = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    const RandomGraph random(seed);
    const Topology& graph = random.graph();
    const auto gpus = static_cast<std::int32_t>(graph.gpus().size());
    for (std::int32_t a = 0; a < gpus; ++a) {
      for (std::int32_t b = 0; b < gpus; ++b) {
        if (a == b) continue;
        const std::vector<int> from_a = random.distances(DeviceId(a), DeviceId(b));
        const std::vector<int> from_b = random.distances(DeviceId(b), DeviceId(a));
        const int shortest = from_a[graph.gpus()[static_cast<std::size_t>(b)].index()];
        const auto shares = graph.route(DeviceId(a), DeviceId(b));
        ASSERT_EQ(shares.empty(), shortest < 0) << "seed " << seed;
        if (shares.empty()) continue;
        ++routes;
        expect_unit_flow(graph, DeviceId(a), DeviceId(b));
        // A link is used exactly when it lies on a shortest path.
        std::set<LinkId> used;
        double hops = 0;
        for (const LinkShare& share : shares) {
          used.insert(share.link);
          hops += share.fraction;
          if (share.fraction < 1) ++split;
        }
        EXPECT_EQ(used.size(), shares.size());
        EXPECT_NEAR(hops, shortest, 1e-9);
        for (std::size_t i = 0; i < graph.links().size(); ++i) {
          const Link& link = graph.links()[i];
          const int before = from_a[link.from.index()];
          const int after = from_b[link.to.index()];
          const bool on_path = before >= 0 && after >= 0 && before + 1 + after == shortest &&
                               random.leads_on(link, DeviceId(a), DeviceId(b));
          EXPECT_EQ(used.contains(LinkId(i)), on_path) << graph.name(LinkId(i)) << " seed " << seed;
        }
      }
    }
  }
  EXPECT_GT(routes, 1000);  // the generator makes connected graphs often enough to mean something
  EXPECT_GT(split, 1000);
}

// a - {s1, s2, s3} - b, where two parallel links lead to s3: 4 paths of equal length, two of them
// over the links a-s3.
TEST(Route, EqualPathsCarryEqualFractions) {
  Topology graph;
  const VertexId a = graph.add_vertex({VertexKind::kGpu, 0, 0});
  const VertexId b = graph.add_vertex({VertexKind::kGpu, 1, 0});
  const auto leaf = [&] { return graph.add_vertex({VertexKind::kLeaf, -1, 0}); };
  const auto join = [&](VertexId x, VertexId y) {
    graph.add_cable({x, y, LinkKind::kFabric, BytesPerSecond(1), {}});
    return LinkId(graph.links().size() - 2);
  };
  const VertexId s1 = leaf(), s2 = leaf(), s3 = leaf(), t1 = leaf(), t2 = leaf(), t3 = leaf();
  join(a, s1);
  join(a, s2);
  const LinkId wide = join(a, s3);
  join(s1, t1);
  join(s2, t1);
  const LinkId upper = join(s3, t2);
  join(s3, t3);
  for (const VertexId t : {t1, t2, t3}) join(t, b);
  std::map<LinkId, double> share;
  for (const LinkShare& s : graph.route(DeviceId(0), DeviceId(1))) share[s.link] = s.fraction;
  EXPECT_DOUBLE_EQ(share[wide], 0.5);
  EXPECT_DOUBLE_EQ(share[upper], 0.25);
}

}  // namespace
}  // namespace stepcast
