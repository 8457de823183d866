// SPDX-License-Identifier: Apache-2.0
#include "replay/graph_replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "cluster/cluster_from.h"
#include "core/each.h"
#include "core/json.h"
#include "core/seeded_random.h"
#include "core/temporary_folder.h"
#include "graphs/chakra_reader.h"
#include "graphs/chakra_writer.h"
#include "graphs/goal_reader.h"
#include "layout/data_folders.h"
#include "places.h"
#include "replay/cluster_network.h"
#include "replay/dimension_network.h"
#include "replay/w1_workload.h"

namespace stepcast {
namespace {

using testing::W1;

std::unique_ptr<GraphNetwork> network_of(std::vector<NetworkDimension> dimensions,
                                         SystemSettings system = {}) {
  return dimension_network({"network.yml", std::move(dimensions)}, system);
}

// One link of 1 GB/s and 1 us to everybody.
std::unique_ptr<GraphNetwork> mesh(std::int64_t ranks) {
  return network_of({{DimensionForm::kFullyConnected, ranks, BytesPerSecond(1e9), Seconds(1e-6)}});
}

// A switch is two links away, so each has half of the latency.
std::unique_ptr<GraphNetwork> network_of(const W1& spec) {
  return network_of(
      {{DimensionForm::kSwitch, W1::kTp, BytesPerSecond(W1::kNear), Seconds(W1::kNearLatency / 2)},
       {DimensionForm::kSwitch, spec.ranks / W1::kTp, BytesPerSecond(W1::kFar),
        Seconds(W1::kFarLatency / 2)}});
}

Result<GraphReplay> replay_goal(const std::string& text, std::int64_t ranks) {
  const auto graph = goal_of(text, "app.goal");
  if (!graph) return failure(graph.error());
  return replay_graph(*graph, *mesh(ranks), {});
}

std::string error_of(const std::string& text, std::int64_t ranks = 4) {
  const auto out = replay_goal(text, ranks);
  return out ? "" : to_string(out.error());
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// 2 us of computing, a message of 1,000 bytes that takes 1 us + 1 us, and 3 us behind it.
TEST(GraphReplay, AMessageJoinsTwoRanks) {
  const auto out = replay_goal(
      "num_ranks 2\nrank 0 {\na: calc 2000\nb: send 1000b to 1 tag 0\nb requires a\n}\n"
      "rank 1 {\na: recv 1000b from 0 tag 0\nb: calc 3000\nb requires a\n}\n",
      2);
  ASSERT_TRUE(out) << to_string(out.error());
  EXPECT_NEAR(out->time.value(), 7e-6, 1e-12);
  EXPECT_EQ(out->critical_rank, 1);
  EXPECT_NEAR(out->ranks[1].compute.value(), 3e-6, 1e-12);
  EXPECT_NEAR(out->ranks[1].communication.value(), 2e-6, 1e-12);
  EXPECT_NEAR(out->ranks[1].waiting.value(), 2e-6, 1e-12);
  EXPECT_NEAR(out->ranks[0].idle.value(), 5e-6, 1e-12);  // an eager send ends at once
  ASSERT_EQ(out->critical_path.size(), 2U);
  EXPECT_EQ(out->critical_path[0].what, "compute");
  EXPECT_NEAR(out->critical_path[0].time.value(), 5e-6, 1e-12);
}

// Two nodes share uplinks of half a NIC on each of 8 rails, which NCCL does not know: of the 63/64
// of the bytes that a ring brings into a pair of nodes each rail takes an eighth at 25 GB/s, also
// without any other traffic.
TEST(GraphReplay, AloneACollectiveStillHasItsOwnLinks) {
  const auto time_over = [](const std::string& oversubscription) {
    const Cluster cluster = testing::cluster_from(
        R"({"base": "dgx-h100", "nodes": 8, "nodes_per_leaf_group": 2, "oversubscription": )" +
        oversubscription + "}");
    const std::string root = source_folder();
    const auto network = cluster_network(
        cluster, {root + "/models", root + "/topologies", root + "/calibrate/profiles"});
    EXPECT_TRUE(network) << to_string(network.error());
    sim::Workload workload;
    (*network)->add_resources(workload);
    std::vector<std::int32_t> ranks(64);
    std::iota(ranks.begin(), ranks.end(), 0);
    return (*network)->collective(CollectiveKind::kAllGather, 1e9, ranks).time().value();
  };
  const double least = 63.0 / 64 * 1e9 / 8 / 25e9;
  EXPECT_GE(time_over("4"), least);
  EXPECT_LE(time_over("4"), 1.2 * least);  // cables carry the part that NICs were measured to
  EXPECT_LT(time_over("1"), 0.7 * least);
}

// Above 65,535 bytes a message waits for its receive, and the sender for the message.
TEST(GraphReplay, ALongMessageOfGoalWaitsForItsReceive) {
  const auto out = replay_goal(
      "num_ranks 2\nrank 0 {\na: send 100000b to 1 tag 0\nb: calc 1000\nb requires a\n}\n"
      "rank 1 {\nc: calc 9000\na: recv 100000b from 0 tag 0\na requires c\n}\n",
      2);
  ASSERT_TRUE(out) << to_string(out.error());
  // 9 us, then 1 us + 100 us, then 1 us.
  EXPECT_NEAR(out->time.value(), 111e-6, 1e-12);
}

// b begins as a does, and not when it ends; on another core, so that they run beside each other.
TEST(GraphReplay, AStartIsAwaitedApartFromAnEnd) {
  const std::string begin = "num_ranks 1\nrank 0 {\nz: calc 100\na: calc 5000\na requires z\n";
  const auto starts = replay_goal(begin + "b: calc 1000 cpu 1\nb irequires a\n}", 1);
  ASSERT_TRUE(starts) << to_string(starts.error());
  EXPECT_NEAR(starts->nodes[0][2].begin.ps, 100'000, 1);
  const auto ends = replay_goal(begin + "b: calc 1000 cpu 1\nb requires a\n}", 1);
  ASSERT_TRUE(ends);
  EXPECT_NEAR(ends->nodes[0][2].begin.ps, 5'100'000, 1);
}

TEST(GraphReplay, NodesOfOneCoreFollowEachOther) {
  const auto out = replay_goal("num_ranks 1\nrank 0 {\ncalc 1000\ncalc 2000\n}", 1);
  ASSERT_TRUE(out);
  EXPECT_NEAR(out->time.value(), 3e-6, 1e-12);
}

// MPI's receives state the room that they have, and what is sent moves.
TEST(GraphReplay, SaysWhichReceivesHaveRoomForMore) {
  const auto out = replay_goal(
      "num_ranks 2\nrank 0 {\na: send 10b to 1\nsend 5b to 1\n}\n"
      "rank 1 {\nb: recv 20b from 0\nrecv 5b from 0\n}\n",
      2);
  ASSERT_TRUE(out) << to_string(out.error());
  EXPECT_EQ(out->roomy_receives, 1);
  EXPECT_EQ(out->roomy_receive,
            "rank 1 line 7 (b) receives 20 bytes, and rank 0 line 3 (a) sends 10");
  EXPECT_EQ(out->messages.front().bytes, 10);
}

TEST(GraphReplay, NamesWhoWaitsForWhom) {
  const std::string receive = "num_ranks 2\nrank 0 {\na: recv 8b from 1 tag 5\n}\nrank 1 {\n}\n";
  EXPECT_TRUE(has(error_of(receive), "rank 0 line 3 (a) receives from rank 1 with tag 5"))
      << error_of(receive);
  const std::string send = "num_ranks 2\nrank 0 {\na: send 8b to 1 tag 5\n}\nrank 1 {\n}\n";
  EXPECT_TRUE(has(error_of(send), "rank 0 line 3 (a) sends to rank 1 with tag 5"))
      << error_of(send);
  const std::string small =
      "num_ranks 2\nrank 0 {\na: send 8b to 1\n}\nrank 1 {\nb: recv 4b from 0\n}\n";
  EXPECT_TRUE(has(error_of(small), "receives 4 bytes, and rank 0 line 3 (a) sends 8"))
      << error_of(small);
  const std::string circle =
      "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}\n";
  EXPECT_TRUE(
      has(error_of(circle), "rank 0 line 3 (a) waits for rank 0 line 4 (b) waits for the first"))
      << error_of(circle);
  const std::string itself = "num_ranks 1\nrank 0 {\na: calc 1\na requires a\n}\n";
  EXPECT_TRUE(has(error_of(itself), "rank 0 line 3 (a) waits for itself")) << error_of(itself);
  // Each receives before it sends: a circle through two ranks.
  const std::string across =
      "num_ranks 2\nrank 0 {\na: recv 8b from 1\nb: send 8b to 1\nb requires a\n}\n"
      "rank 1 {\na: recv 8b from 0\nb: send 8b to 0\nb requires a\n}\n";
  EXPECT_TRUE(has(error_of(across), "waits for")) << error_of(across);
  EXPECT_TRUE(
      has(error_of("num_ranks 8\n" + std::string("rank 0 {\n}\nrank 1 {\n}\nrank 2 {\n}\nrank 3 "
                                                 "{\n}\nrank 4 {\n}\nrank 5 {\n}\nrank 6 "
                                                 "{\n}\nrank 7 {\n}\n")),
          "the graph has 8 ranks, and network.yml has 4"));
}

ExecutionGraph collectives(GraphCollective first, GraphCollective second) {
  ExecutionGraph graph;
  graph.format = "Chakra";
  graph.ranks.resize(2);
  graph.groups = {{0, 1}};
  for (std::size_t r = 0; r < 2; ++r) {
    GraphNode node;
    node.kind = NodeKind::kCollective;
    node.collective = r == 0 ? first : second;
    node.group = 0;
    node.bytes = 1000;
    graph.ranks[r].nodes.push_back(node);
  }
  return graph;
}

TEST(GraphReplay, CollectivesOfAGroupAreTheSameOnAllItsRanks) {
  ExecutionGraph graph = collectives(GraphCollective::kAllReduce, GraphCollective::kAllGather);
  const auto differ = replay_graph(graph, *mesh(2), {});
  ASSERT_FALSE(differ);
  EXPECT_TRUE(has(to_string(differ.error()), "is all-gather of 1000 bytes, and rank 0 node 0"))
      << to_string(differ.error());
  graph = collectives(GraphCollective::kAllReduce, GraphCollective::kAllReduce);
  graph.ranks[1].nodes.clear();
  const auto missing = replay_graph(graph, *mesh(2), {});
  ASSERT_FALSE(missing);
  EXPECT_TRUE(
      has(to_string(missing.error()), "is collective 1 of its group of 2 ranks, and rank 1 has 0"))
      << to_string(missing.error());
}

// Every kind has a price, and none of them is free among two ranks.
TEST(GraphReplay, EveryCollectiveTakesTime) {
  for (int kind = 0; kind < kGraphCollectives; ++kind) {
    const auto which = static_cast<GraphCollective>(kind);
    const auto out = replay_graph(collectives(which, which), *mesh(2), {});
    ASSERT_TRUE(out) << name_of(which);
    EXPECT_GT(out->time.value(), 1e-6) << name_of(which);
  }
}

TEST(GraphReplay, TimesMayComeFromTheFileOrFromTheDataSheet) {
  ExecutionGraph graph = collectives(GraphCollective::kAllReduce, GraphCollective::kAllReduce);
  ReplayRules rules;
  rules.communication = TimeSource::kFile;
  const auto none = replay_graph(graph, *mesh(2), rules);
  ASSERT_FALSE(none);
  EXPECT_TRUE(has(to_string(none.error()), "states no duration"));
  for (RankGraph& rank : graph.ranks) rank.nodes[0].duration = Seconds(5e-6);
  EXPECT_NEAR(replay_graph(graph, *mesh(2), rules)->time.value(), 5e-6, 1e-12);

  SystemSettings system;
  system.peak_flops = 1e12;
  system.memory = BytesPerSecond(1e9);
  const auto network =
      network_of({{DimensionForm::kRing, 1, BytesPerSecond(1), Seconds(0)}}, system);
  ExecutionGraph work;
  work.ranks.resize(1);
  GraphNode node;
  node.kind = NodeKind::kCompute;
  node.duration = Seconds(1);
  node.flops = 3e6;   // 3 us
  node.bytes = 2000;  // 2 us
  work.ranks[0].nodes.push_back(node);
  ReplayRules by_model;
  by_model.compute = TimeSource::kModel;
  EXPECT_NEAR(replay_graph(work, *network, by_model)->time.value(), 3e-6, 1e-12);
  // A node that states no work lasts as the file says, and is counted.
  work.ranks[0].nodes[0].flops = work.ranks[0].nodes[0].bytes = 0;
  EXPECT_NEAR(replay_graph(work, *network, by_model)->time.value(), 1, 1e-9);
  EXPECT_EQ(replay_graph(work, *network, by_model)->without_work, 1);
  by_model.compute = TimeSource::kFile;
  by_model.compute_speed = 4;
  EXPECT_NEAR(replay_graph(work, *network, by_model)->time.value(), 0.25, 1e-9);
}

// Two messages into one rank share its link, unless told that they do not.
TEST(GraphReplay, TransfersShareLinks) {
  const auto network = [] {
    return network_of({{DimensionForm::kSwitch, 3, BytesPerSecond(1e9), Seconds(0)}});
  };
  const auto graph = goal_of(
      "num_ranks 3\nrank 0 {\nrecv 1000b from 1\nrecv 1000b from 2\n}\n"
      "rank 1 {\nsend 1000b to 0\n}\nrank 2 {\nsend 1000b to 0\n}\n",
      "g");
  ASSERT_TRUE(graph) << to_string(graph.error());
  EXPECT_NEAR(replay_graph(*graph, *network(), {})->time.value(), 2e-6, 1e-12);
  ReplayRules apart;
  apart.contention = false;
  EXPECT_NEAR(replay_graph(*graph, *network(), apart)->time.value(), 1e-6, 1e-12);
}

// The order of a file does not matter, because tasks follow the order of the whole graph: here the
// first node of each rank waits for the last one of the other.
TEST(GraphReplay, TheOrderOfAFileMakesNoCircle) {
  const auto out = replay_goal(
      "num_ranks 2\nrank 0 {\na: calc 10\nb: recv 8b from 1\na requires b\nc: calc 20\n"
      "d: send 8b to 1\nd requires c\n}\n"
      "rank 1 {\na: calc 10\nb: recv 8b from 0\na requires b\nc: calc 20\nd: send 8b to 0\n"
      "d requires c\n}\n",
      2);
  ASSERT_TRUE(out) << to_string(out.error());
  EXPECT_NEAR(out->time.value(), 20e-9 + 1e-6 + 8e-9 + 10e-9, 1e-12);
}

TEST(GraphReplay, AClusterPricesAsItsForecastsAre) {
  const std::string root = source_folder();
  const DataFolders folders{root + "/models", root + "/topologies", root + "/calibrate/profiles"};
  const auto document = JsonDocument::from(SortedJson("dgx-h100x1"), "");
  const Cluster cluster = read_cluster(document->root(), folders.topologies);
  ExecutionGraph graph = collectives(GraphCollective::kAllReduce, GraphCollective::kAllReduce);
  for (RankGraph& rank : graph.ranks) rank.nodes[0].bytes = 1 << 20;
  const auto network = cluster_network(cluster, folders);
  ASSERT_TRUE(network) << to_string(network.error());
  const auto out = replay_graph(graph, **network, {});
  ASSERT_TRUE(out) << to_string(out.error());
  const CollectiveCosts costs(cluster, folders.profiles);
  const std::vector<DeviceId> devices{DeviceId(0), DeviceId(1)};
  const double alone =
      costs.price(CollectiveKind::kAllReduce, 1 << 20, DataType::kBf16, devices).time().value();
  EXPECT_NEAR(out->time.value(), alone, 1e-3 * alone);
}

// A message without bytes has the way to go that one of a byte has.
TEST(GraphReplay, OnAClusterAnEmptyMessageTakesItsTime) {
  const std::string root = source_folder();
  const DataFolders folders{root + "/models", root + "/topologies", root + "/calibrate/profiles"};
  const Cluster cluster = testing::cluster_from(R"({"base": "dgx-h100", "nodes": 2})");
  const auto time_of = [&](const std::string& bytes, std::vector<std::int32_t> gpus) {
    const auto graph = goal_of("num_ranks 2\nrank 0 {\nsend " + bytes +
                                   "b to 1\n}\nrank 1 {\nrecv " + bytes + "b from 0\n}\n",
                               "app.goal");
    const auto network = cluster_network(cluster, folders, {"", std::move(gpus)});
    EXPECT_TRUE(network) << to_string(network.error());
    const auto out = replay_graph(*graph, **network, {});
    EXPECT_TRUE(out) << to_string(out.error());
    return out->time.value();
  };
  EXPECT_GT(time_of("0", {}), 1e-6);
  EXPECT_NEAR(time_of("0", {}), time_of("1", {}), 1e-9);
  // In another node the second rank is further away.
  EXPECT_GT(time_of("0", {0, 8}), time_of("0", {0, 7}));
}

// W1 with 128 ranks on the engine's own interface, as traces of Chakra, and in GOAL with every ring
// as single messages. Rounding to whole microseconds does not touch its times.
TEST(W1, IsTheSameStepAsChakraAndAsGoal) {
  const W1 spec{.ranks = 128, .layers = 24, .micro_batches = 6};
  const auto engine = testing::replay_on_engine(spec);
  ASSERT_TRUE(engine) << to_string(engine.error());
  const double own = sim::seconds(engine->end).value();
  EXPECT_GT(own, 0.1);

  const ExecutionGraph graph = testing::graph_of(spec);
  std::vector<std::string> texts;
  for (std::int32_t r = 0; r < spec.ranks; ++r) texts.push_back(chakra_text(graph, r));
  ChakraRules rules;
  for (std::size_t g = 0; g < graph.groups.size(); ++g) {
    rules.groups[std::to_string(g + 1)] = graph.groups[g];
  }
  const auto chakra = chakra_of(texts, rules);
  ASSERT_TRUE(chakra) << to_string(chakra.error());
  EXPECT_EQ(chakra->nodes(), graph.nodes());
  const auto as_chakra = replay_graph(*chakra, *network_of(spec), {});
  ASSERT_TRUE(as_chakra) << to_string(as_chakra.error());
  EXPECT_NEAR(as_chakra->time.value(), own, 1e-4 * own);

  const auto goal = goal_of(testing::goal_text(spec), "w1.goal");
  ASSERT_TRUE(goal) << to_string(goal.error());
  const auto as_goal = replay_graph(*goal, *network_of(spec), {});
  ASSERT_TRUE(as_goal) << to_string(as_goal.error());
  EXPECT_NEAR(as_goal->time.value(), own, 1e-2 * own);
}

// The step of the whole W1 is near 2.97 s.
TEST(W1, HasTheStepThatItIsKnownFor) {
  const W1 spec{.ranks = 128};
  const auto engine = testing::replay_on_engine(spec);
  const auto out = replay_graph(testing::graph_of(spec), *network_of(spec), {});
  ASSERT_TRUE(engine && out);
  const double own = sim::seconds(engine->end).value();
  EXPECT_NEAR(out->time.value(), own, 1e-3 * own);
  // With 16 data-parallel ranks in place of 2 the 12 buckets take 2 (15/16 - 1/2) of their bytes
  // longer, at 50 GB/s, and 28 latencies more.
  const double more =
      12 * (2 * (15.0 / 16 - 1.0 / 2) * W1::kBucket / W1::kFar + 28 * W1::kFarLatency);
  EXPECT_NEAR(own + more, 2.97, 0.005);
}

// Results that ASTRA-sim's documentation prints for its own micro-benchmarks.
struct Published {
  const char* what;
  GraphCollective kind;
  std::int32_t ranks;
  DimensionForm form;
  double cycles;  // of 1 ns
};

ExecutionGraph benchmark(GraphCollective kind, std::int32_t ranks, double bytes) {
  ExecutionGraph graph;
  graph.ranks.resize(static_cast<std::size_t>(ranks));
  graph.groups.emplace_back();
  for (std::int32_t r = 0; r < ranks; ++r) graph.groups[0].push_back(r);
  GraphNode node;
  node.kind = NodeKind::kCollective;
  node.collective = kind;
  node.group = 0;
  node.bytes = bytes;
  for (RankGraph& rank : graph.ranks) rank.nodes.push_back(node);
  return graph;
}

// docs/replay.md, "Beside ASTRA-sim": 50 GB/s and 500 ns a link, and its system file Ring_4chunks.
TEST(AstraSim, PrintsNearlyWhatTheReplaySays) {
  // astra-sim/astra-sim-docs, getting-started/running-astra-sim.md and
  // argument-workload-config.md.
  const std::vector<Published> published{
      {"Ring_allgather_16npus", GraphCollective::kAllGather, 16, DimensionForm::kRing, 323'560},
      {"AllReduce_1MB", GraphCollective::kAllReduce, 8, DimensionForm::kFullyConnected, 64'440}};
  const testing::TemporaryFolder folder;
  folder.write("system.json",
               R"({"scheduling-policy": "LIFO", "endpoint-delay": 10,
                   "active-chunks-per-dimension": 1, "preferred-dataset-splits": 4,
                   "all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"],
                   "reduce-scatter-implementation": ["ring"],
                   "all-to-all-implementation": ["ring"], "boost-mode": 0,
                   "collective-optimization": "localBWAware", "local-mem-bw": 1600,
                   "roofline-enabled": 0, "peak-perf": 900})");
  const auto system = read_system_file(folder / "system.json");
  ASSERT_TRUE(system) << to_string(system.error());
  for (const Published& one : each_of(published)) {
    const char* form = one.form == DimensionForm::kRing ? "Ring" : "FullyConnected";
    folder.write("network.yml", std::string("topology: [ ") + form + " ]\nnpus_count: [ " +
                                    std::to_string(one.ranks) +
                                    " ]\nbandwidth: [ 50.0 ]  # GB/s\nlatency: [ 500.0 ]  # ns\n");
    auto network = read_network_file(folder / "network.yml");
    ASSERT_TRUE(network) << to_string(network.error());
    // A trace, written and read, as ASTRA-sim would have it: its size is 1 MB for each rank.
    const bool gathers = one.kind == GraphCollective::kAllGather;
    const ExecutionGraph made =
        benchmark(one.kind, one.ranks, gathers ? 1048576.0 * one.ranks : 1048576.0);
    std::vector<std::string> texts;
    for (std::int32_t r = 0; r < one.ranks; ++r) texts.push_back(chakra_text(made, r));
    const auto graph = chakra_of(texts, {});
    ASSERT_TRUE(graph) << to_string(graph.error());
    const auto out = replay_graph(*graph, *dimension_network(*network, *system), {});
    ASSERT_TRUE(out) << to_string(out.error());
    EXPECT_NEAR(out->time.value() * 1e9, one.cycles, 1.5e-3 * one.cycles) << one.what;
  }
}

// LogGOPSim's README: its example dissemination_16 ends at 22,000 ns on every host, with o = 1,500
// and L = 2,500 ns. Each of its four rounds is o + L + o there, and one latency of 5,500 ns here;
// a message of one byte takes 6 ns more (G, which LogGOPSim counts from the second byte on).
TEST(LogGopSim, EndsItsDisseminationWhenTheReplayDoes) {
  std::string text = "num_ranks 16\n";
  for (int r = 0; r < 16; ++r) {
    text += "rank " + std::to_string(r) + " {\n";
    for (int round = 0; round < 4; ++round) {
      const int apart = 1 << round;
      const std::string send = "l" + std::to_string(2 * round + 1);
      const std::string receive = "l" + std::to_string(2 * round + 2);
      text += send + ": send 1b to " + std::to_string((r + apart) % 16) + " tag 0\n";
      text += receive + ": recv 1b from " + std::to_string((r + 16 - apart) % 16) + " tag 0\n";
      if (round > 0) text += send + " requires l" + std::to_string(2 * round) + "\n";
    }
    text += "}\n";
  }
  const auto graph = goal_of(text, "dissemination_16.goal");
  ASSERT_TRUE(graph) << to_string(graph.error());
  const auto network =
      network_of({{DimensionForm::kFullyConnected, 16, BytesPerSecond(1e9 / 6), Seconds(5500e-9)}});
  const auto out = replay_graph(*graph, *network, {});
  ASSERT_TRUE(out) << to_string(out.error());
  for (const RankTimes& rank : each_of(out->ranks)) {
    EXPECT_NEAR(rank.end.value(), 22024e-9, 1e-12);
  }
}

TEST(NetworkFile, NamesKeyAndFix) {
  const testing::TemporaryFolder folder;
  const auto wrong = [&](const std::string& text) {
    folder.write("n.yml", text);
    const auto read = read_network_file(folder / "n.yml");
    return read ? std::string() : to_string(read.error());
  };
  EXPECT_TRUE(
      has(wrong("topology: [ Torus ]\nnpus_count: [4]\nbandwidth: [1]\nlatency: [1]\n"), "Torus"));
  EXPECT_TRUE(
      has(wrong("topology: [ Ring, Ring ]\nnpus_count: [4]\nbandwidth: [1]\nlatency: [1]\n"),
          "one value of each for every dimension"));
  EXPECT_TRUE(has(wrong("topology: [ Ring ]\n"), "npus_count"));
  EXPECT_TRUE(has(wrong("topology: [ Ring ]\nnpus_count: [0]\nbandwidth: [1]\nlatency: [1]\n"),
                  "npus_count"));
  EXPECT_TRUE(has(wrong("topology: [Ring, Ring]\nnpus_count: [100000, 100000]\nbandwidth: [1, 1]\n"
                        "latency: [1, 1]\n"),
                  "more ranks than any cluster"));
}

// Random graphs of messages and work: each ends, never before its longest chain of work, and the
// same for a second time.
TEST(GraphReplay, RandomGraphsEnd) {
  SeededRandom random(3);
  for (int i = 0; i < 200; ++i) {
    const std::int64_t ranks = 2 + random.below(5);
    std::vector<std::string> bodies(static_cast<std::size_t>(ranks));
    std::vector<int> labels(static_cast<std::size_t>(ranks), 0);
    double least = 0;
    for (std::int64_t step = 0; step < 30; ++step) {
      const std::int64_t from = random.below(ranks);
      const std::int64_t to = (from + 1 + random.below(ranks - 1)) % ranks;
      const std::int64_t time = random.below(1000), bytes = 1 + random.below(200000);
      auto& a = bodies[static_cast<std::size_t>(from)];
      auto& b = bodies[static_cast<std::size_t>(to)];
      int& la = labels[static_cast<std::size_t>(from)];
      int& lb = labels[static_cast<std::size_t>(to)];
      const auto chain = [](std::string& body, int& label, const std::string& what) {
        body += "l" + std::to_string(label + 1) + ": " + what + "\n";
        if (label > 0) {
          body += "l" + std::to_string(label + 1) + " requires l" + std::to_string(label) + "\n";
        }
        ++label;
      };
      chain(a, la, "calc " + std::to_string(time));
      chain(a, la, "send " + std::to_string(bytes) + "b to " + std::to_string(to) + " tag 1");
      chain(b, lb, "recv " + std::to_string(bytes) + "b from " + std::to_string(from) + " tag 1");
      least = std::max(least, static_cast<double>(time) * 1e-9);
    }
    std::string text = "num_ranks " + std::to_string(ranks) + "\n";
    for (std::int64_t r = 0; r < ranks; ++r) {
      text += "rank " + std::to_string(r) + " {\n" + bodies[static_cast<std::size_t>(r)] + "}\n";
    }
    const auto first = replay_goal(text, ranks), second = replay_goal(text, ranks);
    ASSERT_TRUE(first) << to_string(first.error()) << text;
    EXPECT_GE(first->time.value(), least);
    EXPECT_EQ(first->time.value(), second->time.value());
  }
}

}  // namespace
}  // namespace stepcast
