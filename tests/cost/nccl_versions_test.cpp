// SPDX-License-Identifier: Apache-2.0
// NCCL's versions choose differently, and its environment limits them (docs/collectives.md,
// "Versions").
#include <gtest/gtest.h>

#include "cluster/nccl_settings.h"
#include "core/json.h"
#include "cost/collective_cost.h"
#include "cost/collective_fixture.h"
#include "cost/collective_model.h"
#include "cost/nccl_graph.h"
#include "cost/nccl_tuner.h"

namespace stepcast {
namespace {

using testing::b200;
using testing::h100;

constexpr double kMebi = 1024.0 * 1024;

Result<NcclSettings> software(const std::string& text) {
  const auto document = JsonDocument::parse(text, "");
  EXPECT_TRUE(document);
  const NcclSettings out = read_software((*document)->root());
  if (!(*document)->ok()) return failure((*document)->errors());
  return out;
}

GroupShape nodes_of_eight(std::int64_t nodes) {
  return {8 * nodes, nodes, 8, 8, nodes > 1 ? 8 : 0};
}

NcclGraph graph_of(ClusterSpec spec, std::int64_t nodes, const std::string& text) {
  const auto settings = software(text);
  EXPECT_TRUE(settings) << to_string(settings.error());
  if (settings) spec.nccl = *settings;
  return nccl_graph(spec, nodes_of_eight(nodes));
}

double latency_us(const NcclGraph& graph, Algorithm algorithm, Protocol protocol) {
  const auto estimate =
      nccl_estimate(graph, CollectiveKind::kAllReduce, algorithm, protocol, Bytes(kMebi));
  return estimate ? estimate->latency.value() * 1e6 : 0;
}

double bus_rate(const NcclGraph& graph, Algorithm algorithm, Protocol protocol) {
  const auto estimate =
      nccl_estimate(graph, CollectiveKind::kAllReduce, algorithm, protocol, Bytes(1e12));
  const double n = static_cast<double>(graph.ranks);
  return estimate ? estimate->bandwidth.value() * 1e-9 * 2 * (n - 1) / n : 0;
}

// A Simple tree over two nodes of 8 has 7 hops up and down inside, and one across. Base 8.4 from
// 2.23 on; 28 us a hop in 2.19 to 2.22; 4 and 14 in the others.
TEST(NcclVersions, CountTheHopsOfATreeEachInTheirWay) {
  const auto tree = [](const char* version) {
    return latency_us(graph_of(h100(2), 2, std::string(R"({"nccl": ")") + version + "\"}"),
                      Algorithm::kTree, Protocol::kSimple);
  };
  EXPECT_NEAR(tree("2.18.6"), 2 * (7 * 4 + 14), 1e-6);
  EXPECT_NEAR(tree("2.19"), 2 * (7 * 28 + 28), 1e-6);
  EXPECT_NEAR(tree("2.22.3"), 2 * (7 * 28 + 28), 1e-6);
  EXPECT_NEAR(tree("2.23"), 8.4 + 2 * (7 * 4 + 14), 1e-6);
  EXPECT_NEAR(tree("2.30.7"), 8.4 + 2 * (7 * 4 + 14), 1e-6);
}

// So in 2.19 to 2.22 no Simple tree runs where the other versions take some.
TEST(NcclVersions, TakeNoSimpleTreesFrom219To222) {
  const auto trees = [](const char* version) {
    ClusterSpec spec = h100(16);
    spec.nvls = false;
    const NcclGraph graph = graph_of(spec, 16, std::string(R"({"nccl": ")") + version + "\"}");
    int count = 0;
    for (double size = kMebi / 4; size <= 1024 * kMebi; size *= 2) {
      const auto best =
          nccl_choice(graph, CollectiveKind::kAllReduce, Bytes(size), DataType::kBf16);
      count += best.algorithm == Algorithm::kTree && best.protocol == Protocol::kSimple ? 1 : 0;
    }
    return count;
  };
  EXPECT_LT(trees("2.20"), trees("2.18"));
  EXPECT_LT(trees("2.20"), trees("2.24"));
}

// The cap of LL in one node of Hopper is 87.7 GB/s up to 2.20 and 141 from 2.21, below a quarter
// and a half of the ring's 360.
TEST(NcclVersions, LiftTheCapOfLlIn221) {
  const auto bus = [](const char* version) {
    return bus_rate(graph_of(h100(1), 1, std::string(R"({"nccl": ")") + version + "\"}"),
                    Algorithm::kRing, Protocol::kLl);
  };
  EXPECT_NEAR(bus("2.20"), 87.7, 1e-6);
  EXPECT_NEAR(bus("2.21"), 141, 1e-6);
}

// A large all-reduce of a node of Hopper stays in the switch in every version. Blackwell has
// Hopper's rows and no LL128 before 2.25.
TEST(NcclVersions, StayInTheSwitchAndKnowBlackwellSince225) {
  for (int minor = NcclSettings::kOldest; minor <= NcclSettings::kNewest; ++minor) {
    const std::string text = R"({"nccl": "2.)" + std::to_string(minor) + "\"}";
    const auto best = nccl_asymptote(graph_of(h100(1), 1, text), CollectiveKind::kAllReduce);
    EXPECT_EQ(best.algorithm, Algorithm::kNvls) << minor;
    const bool has_ll128 =
        bus_rate(graph_of(b200(1), 1, text), Algorithm::kRing, Protocol::kLl128) > 0;
    EXPECT_EQ(has_ll128, minor >= 25) << minor;
  }
}

// Nothing stated is 2.28, but for the rating of in-switch reduction on one node.
TEST(NcclVersions, AreAs228WhereNothingIsStated) {
  for (const std::int64_t nodes : {1, 2, 4}) {
    for (const ClusterSpec& spec : {h100(nodes), b200(nodes)}) {
      const NcclGraph usual = graph_of(spec, nodes, "{}");
      const NcclGraph stated = graph_of(spec, nodes, R"({"nccl": "2.28.9"})");
      for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree, Algorithm::kNvlsTree}) {
        for (const Protocol protocol : {Protocol::kLl, Protocol::kLl128, Protocol::kSimple}) {
          EXPECT_EQ(latency_us(usual, algorithm, protocol),
                    latency_us(stated, algorithm, protocol));
          EXPECT_EQ(bus_rate(usual, algorithm, protocol), bus_rate(stated, algorithm, protocol));
        }
      }
    }
  }
}

// One GPU a node, a gather of 1 MiB among 64: a ring's 63 steps of 14 us (8.5 under LL128, 5 under
// LL) are more than 8 + 6 x 14/3.5 + 64 x 2.8 = 211.2 us. PAT came with 2.23, moves 0.85 of the bus
// there and 0.75 since, and is not for groups with two GPUs on a node or for all-reduces.
TEST(NcclVersions, GatherOneGpuANodeOverAggregatedTreesSince223) {
  const auto graph = [](const char* version, std::int64_t of_node) {
    ClusterSpec spec = h100(64);
    spec.nccl = *software(std::string(R"({"nccl": ")") + version + "\"}");
    return nccl_graph(spec, {64 * of_node, 64, of_node, of_node, of_node});
  };
  const auto pat = [&](const char* version, std::int64_t of_node, CollectiveKind kind) {
    return nccl_estimate(graph(version, of_node), kind, Algorithm::kPat, Protocol::kSimple,
                         Bytes(kMebi));
  };
  constexpr auto kGather = CollectiveKind::kAllGather;
  EXPECT_FALSE(pat("2.22", 1, kGather));
  EXPECT_FALSE(pat("2.28", 2, kGather));
  EXPECT_FALSE(pat("2.28", 1, CollectiveKind::kAllReduce));
  EXPECT_TRUE(pat("2.28", 1, CollectiveKind::kReduceScatter));
  ASSERT_TRUE(pat("2.28", 1, kGather) && pat("2.23", 1, kGather));
  EXPECT_NEAR(pat("2.28", 1, kGather)->latency.value() * 1e6, 211.2, 1e-9);
  EXPECT_NEAR(pat("2.23", 1, kGather)->bandwidth / pat("2.28", 1, kGather)->bandwidth, 0.85 / 0.75,
              1e-12);
  const auto choice = [&](const char* version, double bytes) {
    return nccl_choice(graph(version, 1), kGather, Bytes(bytes), DataType::kBf16).algorithm;
  };
  EXPECT_EQ(choice("2.28", kMebi), Algorithm::kPat);
  EXPECT_EQ(choice("2.22", kMebi), Algorithm::kRing);
  EXPECT_EQ(choice("2.28", 16384 * kMebi), Algorithm::kRing);
  const auto excluded = software(R"({"nccl": "2.28", "NCCL_ALGO": "^pat"})");
  ASSERT_TRUE(excluded);
  NcclGraph without = graph("2.28", 1);
  without.settings = *excluded;
  EXPECT_EQ(nccl_choice(without, kGather, Bytes(kMebi), DataType::kBf16).algorithm,
            Algorithm::kRing);
}

// The tables of a version say what it takes. What it took is as fast as under any other: 2.19 calls
// a Simple tree's hop 28 us, and its choice of one lasts as long as that of 2.28.
TEST(NcclVersions, ChangeTheChoiceAndNotTheWires) {
  const auto estimate = [](const char* version, CollectiveKind kind, double bytes) {
    ClusterSpec spec = h100(2);
    spec.nccl = *software(std::string(R"({"NCCL_ALGO": "Tree", "nccl": ")") + version + "\"}");
    return CollectiveModel(spec, nodes_of_eight(2)).estimate(kind, Bytes(bytes), DataType::kBf16);
  };
  const auto kind = CollectiveKind::kAllReduce;
  const NcclEstimate before = estimate("2.19", kind, 4096 * kMebi);
  const NcclEstimate now = estimate("2.28", kind, 4096 * kMebi);
  ASSERT_EQ(before.protocol, now.protocol);
  EXPECT_EQ(before.latency, now.latency);
  EXPECT_EQ(before.bandwidth, now.bandwidth);
}

// 2.20 was the first that takes a rack of NVLink for a node, and shut NVLS and NVLSTree on it.
TEST(NcclVersions, ReduceInTheSwitchesOfARackSince221) {
  const auto heads = [](const char* version, std::int64_t nodes_of_domain) {
    ClusterSpec spec = h100(2);
    spec.nvlink_domain_nodes = nodes_of_domain;
    spec.nccl = *software(std::string(R"({"nccl": ")") + version + "\"}");
    return nccl_graph(spec, {16, 1, 16, 16, 0}).nvls.count;
  };
  EXPECT_EQ(heads("2.20.5", 2), 0);
  EXPECT_GT(heads("2.20.5", 1), 0);
  EXPECT_GT(heads("2.21", 2), 0);
}

// Images of NVIDIA's are named by year and month.
TEST(NcclVersions, FollowTheMonthOfAContainer) {
  const auto minor = [](const std::string& text) {
    const auto read = software(R"({"nccl": ")" + text + "\"}");
    return read ? read->minor : 0;
  };
  EXPECT_EQ(minor("nvcr.io/nvidia/pytorch:25.04-py3"), 26);
  EXPECT_EQ(minor("pytorch:24.04"), 21);
  EXPECT_EQ(minor("24.04"), minor("2024-04"));
  EXPECT_EQ(minor("nvcr.io/nvidia/pytorch:latest"), 0);
  EXPECT_EQ(minor("25.13"), 0);
  EXPECT_EQ(minor("2.25"), 25);
  EXPECT_TRUE(software(R"({"nccl": "pytorch:26.10-py3"})")->is_newer);
}

TEST(NcclEnvironment, ChoosesAlgorithmsAndProtocols) {
  const auto choice = [](const std::string& text, CollectiveKind kind, double size) {
    return nccl_choice(graph_of(h100(2), 2, text), kind, Bytes(size), DataType::kBf16);
  };
  constexpr auto kReduce = CollectiveKind::kAllReduce;
  EXPECT_EQ(choice(R"({"NCCL_ALGO": "Ring"})", kReduce, 1e9).algorithm, Algorithm::kRing);
  EXPECT_EQ(choice(R"({"NCCL_ALGO": "Tree"})", kReduce, 1e9).algorithm, Algorithm::kTree);
  EXPECT_NE(choice(R"({"NCCL_ALGO": "^NVLSTree"})", kReduce, 1e9).algorithm, Algorithm::kNvlsTree);
  EXPECT_EQ(choice(R"({"NCCL_ALGO": "allreduce:tree;allgather:ring"})", kReduce, 1e9).algorithm,
            Algorithm::kTree);
  EXPECT_EQ(choice(R"({"NCCL_PROTO": "LL"})", kReduce, 1e9).protocol, Protocol::kLl);
  EXPECT_NE(choice(R"({"NCCL_PROTO": "^LL,LL128"})", kReduce, 1e3).protocol, Protocol::kLl);
  // There is no tree for a gather: a ring runs.
  EXPECT_EQ(choice(R"({"NCCL_ALGO": "Tree"})", CollectiveKind::kAllGather, 1e9).algorithm,
            Algorithm::kRing);
  EXPECT_EQ(graph_of(h100(1), 1, R"({"NCCL_NVLS_ENABLE": 0})").nvls.count, 0);
  EXPECT_EQ(graph_of(h100(1), 1, R"({"NCCL_MAX_NCHANNELS": 4})").run_channels, 4);
  EXPECT_EQ(graph_of(h100(1), 1, R"({"NCCL_MIN_CTAS": 40})").run_channels, 40);
}

TEST(NcclEnvironment, RefusesWhatNcclDoesNotKnow) {
  const auto error = [](const std::string& text) {
    const auto read = software(text);
    return read ? std::string() : to_string(read.error());
  };
  EXPECT_NE(error(R"({"nccl": "2.17"})").find("older"), std::string::npos);
  EXPECT_NE(error(R"({"nccl": "two"})").find("is no version"), std::string::npos);
  EXPECT_NE(error(R"({"NCCL_ALGO": "star"})").find("'star' is not known to NCCL"),
            std::string::npos);
  EXPECT_NE(error(R"({"NCCL_ALGO": "CollnetChain"})").find("is not modelled"), std::string::npos);
  EXPECT_NE(error(R"({"NCCL_PROTOS": "LL"})").find("NCCL_PROTO"), std::string::npos);
  const auto newer = software(R"({"nccl": "2.31.2"})");
  ASSERT_TRUE(newer);
  EXPECT_TRUE(newer->is_newer);
  EXPECT_EQ(newer->minor, NcclSettings::kNewest);
  // 2.22.3 is of June 2024, and the next release of September.
  EXPECT_EQ(software(R"({"nccl": "2024-08"})")->minor, 22);
  EXPECT_NE(error(R"({"nccl": "2022-01"})").find("is no version"), std::string::npos);
}

}  // namespace
}  // namespace stepcast
