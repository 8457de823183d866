// SPDX-License-Identifier: Apache-2.0
// Collectives among AMD's GPUs: another library than NCCL, over a mesh in which a pair sees one
// link.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "cluster/cluster_from.h"
#include "core/json.h"
#include "cost/collective_cost.h"
#include "cost/collective_fixture.h"
#include "cost/nccl_graph.h"

namespace stepcast {
namespace {

using testing::cluster_from;
using testing::devices;
using testing::shipped_profiles;

constexpr ByteCount kMebibyteOfRccl = 1 << 20;

GroupShape one_mesh(std::int64_t ranks) { return {ranks, 1, ranks, ranks, 0}; }

std::string rccl_curve(const Cluster& cluster, CollectiveKind kind, std::int64_t ranks) {
  const CollectiveCosts costs(cluster, shipped_profiles());
  return costs.curve_name(costs.price(kind, kMebibyteOfRccl, DataType::kBf16, devices(ranks)));
}

TEST(Rccl, TakesItsOwnCurvesAndLeavesThemToAmd) {
  const Cluster older = cluster_from(R"({"base": "azure-nd-mi300x-v5", "nodes": 4})");
  EXPECT_EQ(rccl_curve(older, CollectiveKind::kAllReduce, 8), "mi300x8-all-reduce-rccl");
  EXPECT_EQ(rccl_curve(older, CollectiveKind::kAllReduce, 32), "mi300x16-all-reduce-rccl");
  const Cluster newer = cluster_from(R"({"base": "mi355x-8", "nodes": 4})");
  EXPECT_EQ(rccl_curve(newer, CollectiveKind::kAllReduce, 32), "mi355x16-all-reduce-rccl");
  EXPECT_EQ(rccl_curve(newer, CollectiveKind::kAllGather, 8), "mi355x8-all-gather-rccl");
  // Nobody has published it for AMD, and NCCL's says nothing of RCCL.
  EXPECT_EQ(rccl_curve(newer, CollectiveKind::kAllToAll, 8), "");
  for (const char* name : {"dgx-a100-80g", "dgx-h100", "dgx-b200", "gh200-alps"}) {
    const Cluster nvidia = cluster_from(std::string("\"") + name + "x2\"");
    for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather}) {
      EXPECT_EQ(rccl_curve(nvidia, kind, 4).find("mi3"), std::string::npos) << name;
      EXPECT_EQ(rccl_curve(nvidia, kind, nvidia.gpus()).find("mi3"), std::string::npos) << name;
    }
  }
}

// 48 of the 64 GB/s of a link; ROCm/rccl counts on no more, and a pair has no other link.
TEST(Rccl, GivesAGroupTheLinksBetweenItsMembers) {
  const Cluster cluster = cluster_from(R"("azure-nd-mi300x-v5")");
  for (const std::int64_t ranks : {2, 4, 8}) {
    const NcclGraph graph = nccl_graph(cluster.spec, one_mesh(ranks));
    EXPECT_EQ(graph.ring.count, ranks - 1);
    EXPECT_NEAR(graph.ring.total().value(), 48e9 * static_cast<double>(ranks - 1), 1);
  }
  const CollectiveCosts costs(cluster, shipped_profiles());
  const auto bus = [&](std::int64_t ranks) {
    const double n = static_cast<double>(ranks);
    const ByteCount size = 1024 * kMebibyteOfRccl;
    const CollectivePrice price =
        costs.price(CollectiveKind::kAllReduce, size, DataType::kBf16, devices(ranks));
    return static_cast<double>(size) / price.time().value() * 2 * (n - 1) / n;
  };
  EXPECT_NEAR(bus(4) / bus(2), 3, 0.05);
  EXPECT_NEAR(bus(8) / bus(2), 7, 0.1);
  EXPECT_NEAR(bus(8), 314e9, 1e9);
}

TEST(Rccl, TakesComputeUnitsAndReducesInNoSwitch) {
  ClusterSpec spec = testing::machine(GpuArchitecture::kCdna4, 537.6, 2);
  spec.nic_bandwidth = BytesPerSecond(50e9);
  spec.nvls = true;
  EXPECT_EQ(nccl_graph(spec, one_mesh(8)).nvls.count, 0);
  spec.scale_up = ScaleUp::kNvlinkMesh;
  EXPECT_EQ(nccl_graph(spec, one_mesh(8)).run_channels, 56);
  EXPECT_EQ(nccl_graph(spec, {16, 2, 8, 8, 8}).run_channels, 48);
}

TEST(Rccl, ChoosesTreesForShortMessagesAcrossNodesUnlessForbidden) {
  ClusterSpec spec = testing::machine(GpuArchitecture::kCdna3, 448, 2);
  spec.scale_up = ScaleUp::kNvlinkMesh;
  spec.nic_bandwidth = BytesPerSecond(50e9);
  const auto choice = [&](const GroupShape& group, ByteCount size) {
    return nccl_choice(nccl_graph(spec, group), CollectiveKind::kAllReduce,
                       Bytes(static_cast<double>(size)), DataType::kBf16);
  };
  const GroupShape two{16, 2, 8, 8, 8};
  EXPECT_EQ(choice(two, 64 * kMebibyteOfRccl).algorithm, Algorithm::kTree);
  EXPECT_EQ(choice(two, 128 * kMebibyteOfRccl).algorithm, Algorithm::kRing);
  EXPECT_EQ(choice(one_mesh(8), 64 * kMebibyteOfRccl).algorithm, Algorithm::kRing);
  EXPECT_EQ(choice(two, kMebibyteOfRccl).protocol, Protocol::kLl);
  EXPECT_EQ(choice(two, 8 * kMebibyteOfRccl).protocol, Protocol::kLl128);
  EXPECT_EQ(choice(two, 32 * kMebibyteOfRccl).protocol, Protocol::kSimple);
  // More nodes take longer, by rings and by trees.
  const GroupShape four{32, 4, 8, 8, 8};
  EXPECT_GT(choice(four, kMebibyteOfRccl).latency, choice(two, kMebibyteOfRccl).latency);
  EXPECT_GT(choice(four, 256 * kMebibyteOfRccl).latency,
            choice(two, 256 * kMebibyteOfRccl).latency);
  spec.nccl.may_run.fill(1U << static_cast<unsigned>(NcclAlgorithm::kRing));
  EXPECT_EQ(choice(two, kMebibyteOfRccl).algorithm, Algorithm::kRing);
}

TEST(Rccl, RunsNoProtocolThatIsForbidden) {
  ClusterSpec spec = testing::machine(GpuArchitecture::kCdna3, 448, 2);
  spec.scale_up = ScaleUp::kNvlinkMesh;
  spec.nic_bandwidth = BytesPerSecond(50e9);
  const auto choice = [&](const std::string& protocols, ByteCount size) {
    const auto document = JsonDocument::parse(
        R"({"nccl": "2.27", "NCCL_PROTO": ")" + protocols + "\"}", "software.json");
    EXPECT_TRUE(document);
    spec.nccl = read_software((*document)->root());
    EXPECT_TRUE((*document)->ok()) << to_string((*document)->errors());
    return nccl_choice(nccl_graph(spec, {16, 2, 8, 8, 8}), CollectiveKind::kAllReduce,
                       Bytes(static_cast<double>(size)), DataType::kBf16);
  };
  EXPECT_EQ(choice("Simple", kMebibyteOfRccl).protocol, Protocol::kSimple);
  EXPECT_EQ(choice("Simple", kMebibyteOfRccl).algorithm, Algorithm::kTree);
  EXPECT_EQ(choice("LL", 256 * kMebibyteOfRccl).protocol, Protocol::kLl);
  EXPECT_EQ(choice("^LL", kMebibyteOfRccl).protocol, Protocol::kLl128);
  EXPECT_EQ(choice("^LL128", 8 * kMebibyteOfRccl).protocol, Protocol::kSimple);
}

// MORI on 8 MI350X combines so many tokens of 7,168 in bf16, of which each goes to 8 of 256 experts
// (ROCm/mori@1084b514, ep8_mi350x_tuning_results.md), in microseconds.
TEST(Rccl, ExchangesOfTokensAreBoundByTheMesh) {
  const Cluster cluster = cluster_from(R"("mi350x-8")");
  const CollectiveModel model(cluster.spec, one_mesh(8));
  const std::vector<std::pair<double, double>> measured = {
      {128, 39.7}, {512, 105.5}, {1024, 193.3}, {2048, 366.4}, {4096, 713.4}};
  for (const auto& [tokens, microseconds] : measured) {
    const Bytes rows(tokens * 8 * 7168 * 2);
    const double forecast = model.exchange_once(8, 64).time(rows).value() * 1e6;
    EXPECT_NEAR(forecast / microseconds, 1, 0.06) << tokens;
  }
}

// 16 MI355X in two nodes, by the same kernels, to the experts in bf16 (EP16.en.md@ac97b1d6).
TEST(Rccl, ExchangesOfTokensBetweenNodesAreBoundByTheNics) {
  const Cluster cluster = cluster_from(R"("mi355x-8x2")");
  const CollectiveModel model(cluster.spec, GroupShape{16, 2, 8, 8, 8});
  const std::vector<std::pair<double, double>> measured = {{512, 250.24},    {4096, 1709.39},
                                                           {8192, 3066.71},  {16384, 5716.82},
                                                           {32768, 10944.2}, {65536, 21419.2}};
  for (const auto& [tokens, microseconds] : measured) {
    const Bytes rows(tokens * 8 * 7168 * 2);
    const double forecast = model.exchange_once(8, 80).time(rows).value() * 1e6;
    EXPECT_NEAR(forecast / microseconds, 1, 0.19) << tokens;
  }
}

// The MI325X's nodes have their own NICs and stand in no curve: rings of 2, 4 and 8 nodes, 4 to 16
// GiB (calibrate/published/collectives_rccl.json).
TEST(Rccl, ForecastsNodesThatNoCurveWasMadeFrom) {
  const auto document =
      JsonDocument::load(source_folder() + "/calibrate/published/collectives_rccl.json");
  ASSERT_TRUE(document);
  const Cluster cluster = cluster_from(R"({"base": "mi325x-8", "nodes": 8})");
  const CollectiveCosts costs(cluster, shipped_profiles());
  int seen = 0;
  for (const SortedJson& table : (*document)->root().raw()["tables"]) {
    if (table["accelerator"] != "mi325x-256g") continue;
    for (const SortedJson& row : table["rows_bytes_us"]) {
      const auto size = row[0].get<ByteCount>();
      const CollectivePrice price = costs.price(CollectiveKind::kAllReduce, size, DataType::kFp32,
                                                devices(table["ranks"].get<std::int64_t>()));
      EXPECT_NEAR(price.time().value() * 1e6 / row[1].get<double>(), 1, 0.03) << table["id"];
      ++seen;
    }
  }
  EXPECT_EQ(seen, 9);
}

}  // namespace
}  // namespace stepcast
