// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "core/each.h"

#include "tests/cluster/cluster_from.h"

namespace stepcast {
namespace {

using testing::cluster_from;
using testing::kTopologies;
using testing::read;

std::vector<std::string> shipped() {
  std::vector<std::string> out;
  const auto clusters = list_clusters(kTopologies);
  EXPECT_TRUE(clusters.has_value()) << to_string(clusters.error());
  for (const ClusterSpec& spec : *clusters) out.push_back(spec.name);
  return out;
}

TEST(ShippedClusters, HoldTheNamesThatScenariosRelyOn) {
  const std::vector<std::string> names = shipped();
  for (const char* name :
       {"dgx-a100-80g", "dgx-a100-40g", "a100-pcie-8", "dgx-h100", "grand-teton-h100-96g",
        "dgx-h800", "dgx-h200", "dgx-b200", "dgx-b300", "gb200-nvl72", "gb300-nvl72", "gh200-alps",
        "pcie-4090-8", "aws-p4d", "aws-p5", "aws-p5en", "azure-nd-h100-v5", "gcp-a3-mega"}) {
    EXPECT_TRUE(std::find(names.begin(), names.end(), name) != names.end()) << name;
  }
}

TEST(ShippedClusters, EachBuildsAndPassesCheckAtItsOwnSizeAndAtTwoNodes) {
  AtLeast networks(10);
  for (const std::string& name : each_of(shipped())) {
    const Cluster own = cluster_from("\"" + name + "\"");
    EXPECT_EQ(own.spec.name, name);
    EXPECT_EQ(own.gpus(), static_cast<std::int64_t>(own.topology.gpus().size()));
    EXPECT_TRUE(own.topology.check().empty()) << name << to_string(own.topology.check());
    EXPECT_FALSE(own.spec.sources.empty()) << name;
    EXPECT_FALSE(own.spec.title.empty()) << name;
    if (own.spec.nics_per_node == 0) continue;
    ++networks;
    const Cluster two = cluster_from("\"" + name + "x2\"");
    EXPECT_TRUE(two.topology.check().empty()) << name << to_string(two.topology.check());
    EXPECT_FALSE(
        two.topology.route(DeviceId(0), DeviceId(static_cast<std::int32_t>(two.spec.gpus_per_node)))
            .empty())
        << name;
  }
}

TEST(ShippedAccelerators, AreCompleteAndNamedAsTheirFiles) {
  const auto accelerators = list_accelerators(kTopologies);
  ASSERT_TRUE(accelerators.has_value()) << to_string(accelerators.error());
  EXPECT_GE(accelerators->size(), 20u);
  for (const Accelerator& a : *accelerators) {
    EXPECT_TRUE(find_accelerator(a.name, kTopologies).has_value()) << a.name;
    EXPECT_TRUE(a.peak(DataType::kFp16).has_value()) << a.name;
    EXPECT_GT(a.power_w, 0) << a.name;
    EXPECT_FALSE(a.sources.empty()) << a.name;
    // A plausible machine: between 10 and 500 operations per byte of memory traffic.
    const double intensity = a.peak(DataType::kFp16)->value() / a.memory_bandwidth.value();
    EXPECT_GT(intensity, 10) << a.name;
    EXPECT_LT(intensity, 500) << a.name;
  }
}

TEST(ShippedAccelerators, StateMemoryAsTheDriverReportsIt) {
  const auto a100 = find_accelerator("a100-sxm4-80g", kTopologies);
  ASSERT_TRUE(a100.has_value());
  EXPECT_EQ(a100->memory, 84986665370);  // 79.15 GiB, not 80 GB
  EXPECT_EQ(a100->compute_capability, 80);
  EXPECT_EQ(a100->sm_count, 108);
  EXPECT_EQ(a100->architecture, GpuArchitecture::kAmpere);
  EXPECT_DOUBLE_EQ(a100->peak(DataType::kBf16)->value(), 312e12);
  EXPECT_FALSE(a100->peak(DataType::kFp8).has_value());
  EXPECT_EQ(find_accelerator("h200-sxm5-141g", kTopologies)->memory, 143771LL << 20);
}

TEST(ReadCluster, TextMayGiveTheNodes) {
  EXPECT_EQ(cluster_from("\"dgx-h100x8\"").spec.nodes, 8);
  EXPECT_EQ(cluster_from("\"dgx-h100\"").spec.nodes, 1);
  EXPECT_EQ(cluster_from("\"gb200-nvl72\"").spec.nodes, 18);
  EXPECT_EQ(cluster_from("\"gb200-nvl72x2\"").gpus(), 8);
  EXPECT_EQ(cluster_from("\"selene\"").gpus(), 4480);
}

TEST(ReadCluster, GpusGiveAsManyNodesAsHoldThem) {
  const Cluster cluster = cluster_from(R"({"base": "dgx-a100-80g", "gpus": 1024})");
  EXPECT_EQ(cluster.spec.nodes, 128);
  EXPECT_EQ(cluster_from(R"({"base": "dgx-a100-80g", "gpus": 1})").spec.nodes, 1);
  EXPECT_EQ(cluster_from(R"({"base": "dgx-a100-80g", "gpus": 60, "nodes": 8})").gpus(), 60);
}

TEST(ReadCluster, OverridesChangeTheBase) {
  const ClusterSpec spec =
      cluster_from(R"({"base": "dgx-a100-80g", "nodes": 40, "nics_per_node": 4, "nic": "100 Gb/s",
        "oversubscription": 2, "nodes_per_leaf_group": 10, "pod_nodes": 20,
        "pod_oversubscription": 3, "rail_optimised": false, "network": "roce", "cpu": "intel",
        "network_latency": "3 us", "scale_up_bandwidth": "250 GB/s"})")
          .spec;
  EXPECT_EQ(spec.nics_per_node, 4);
  EXPECT_DOUBLE_EQ(spec.nic_bandwidth.value(), 12.5e9);
  EXPECT_DOUBLE_EQ(spec.oversubscription, 2);
  EXPECT_EQ(spec.nodes_per_leaf_group, 10);
  EXPECT_EQ(spec.pod_nodes, 20);
  EXPECT_DOUBLE_EQ(spec.pod_oversubscription, 3);
  EXPECT_FALSE(spec.rail_optimised);
  EXPECT_EQ(spec.network, Network::kRoce);
  EXPECT_EQ(spec.cpu, CpuVendor::kIntel);
  EXPECT_DOUBLE_EQ(spec.network_latency.value(), 3e-6);
  EXPECT_DOUBLE_EQ(spec.scale_up_bandwidth.value(), 250e9);
  EXPECT_EQ(spec.accelerator.name, "a100-sxm4-80g");  // kept
  EXPECT_DOUBLE_EQ(spec.pcie_bandwidth.value(), 31.5e9);
}

TEST(ReadCluster, AnotherAcceleratorOrNodeSizeMayBePutIn) {
  const Cluster cluster = cluster_from(
      R"({"base": "dgx-h100", "accelerator": "h200-sxm5-141g", "gpus_per_node": 4, "gpus": 12})");
  EXPECT_EQ(cluster.spec.accelerator.name, "h200-sxm5-141g");
  EXPECT_EQ(cluster.spec.nodes, 3);
}

TEST(ReadCluster, AWholeClusterMayStandInTheScenario) {
  const Cluster cluster = cluster_from(R"({"accelerator": "l40s-48g", "nodes": 2,
    "gpus_per_node": 4, "scale_up": "pcie", "scale_up_bandwidth": "31.5 GB/s", "pcie": "31.5 GB/s",
    "nics_per_node": 1, "nic": "100 Gb/s", "network": "roce", "network_latency": "1 us"})");
  EXPECT_EQ(cluster.gpus(), 8);
  EXPECT_TRUE(cluster.topology.check().empty());
}

TEST(ReadCluster, TheBaseMayBeAPath) {
  const Cluster cluster =
      cluster_from(R"({"base": ")" + kTopologies + R"(/clusters/dgx-h100.json", "nodes": 2})");
  EXPECT_EQ(cluster.spec.name, "dgx-h100");
  EXPECT_EQ(cluster.gpus(), 16);
}

TEST(ReadCluster, TheSameTextGivesTheSameGraph) {
  const Topology a = cluster_from("\"dgx-b200x40\"").topology;
  const Topology b = cluster_from("\"dgx-b200x40\"").topology;
  ASSERT_EQ(a.links().size(), b.links().size());
  for (std::size_t i = 0; i < a.links().size(); ++i) {
    EXPECT_EQ(a.name(LinkId(i)), b.name(LinkId(i)));
    EXPECT_EQ(a.links()[i].capacity, b.links()[i].capacity);
  }
}

// Each with the key path that the error must name, and a word of the message or hint.
struct BadCluster {
  const char* json;
  const char* path;
  ErrorCode code;
  const char* word;
};

constexpr char kWhole[] = R"("accelerator": "l40s-48g", "gpus_per_node": 4, "scale_up": "pcie",
    "scale_up_bandwidth": "31 GB/s", "pcie": "31 GB/s", "nics_per_node": 0)";

const BadCluster kBad[] = {
    {"7", "cluster", ErrorCode::kWrongType, "dgx-h100x8"},
    {"[]", "cluster", ErrorCode::kWrongType, "object"},
    {R"("dgx-h10")", "cluster", ErrorCode::kNotFound, "did you mean 'dgx-h100'?"},
    {R"("dgx-h100x0")", "cluster", ErrorCode::kBadValue, "0 is out of range"},
    {R"("dgx-h100x99999999999999999999999")", "cluster", ErrorCode::kBadValue, "131072"},
    {R"("dgx-h100x")", "cluster", ErrorCode::kNotFound, "dgx-h100"},
    {R"("")", "cluster", ErrorCode::kNotFound, "there is no cluster ''"},
    {R"("localx2")", "cluster", ErrorCode::kBadValue, "2 is out of range"},
    {"{}", "cluster.base", ErrorCode::kMissingKey, "missing"},
    {R"({"bse": "dgx-h100"})", "cluster.bse", ErrorCode::kUnknownKey, "did you mean 'base'?"},
    {R"({"base": 3})", "cluster.base", ErrorCode::kWrongType, "text"},
    {R"({"base": "dgx-x100"})", "cluster.base", ErrorCode::kNotFound, "did you mean"},
    {R"({"base": "local", "gpus": 65})", "cluster.gpus", ErrorCode::kBadValue, "65"},
    {R"({"base": "local", "nic": "100 Gb/s"})", "cluster.nic", ErrorCode::kUnknownKey, "known key"},
    {R"({"base": "local", "accelerator": "h100-sxm5-80g"})", "cluster.accelerator",
     ErrorCode::kIllegal, "cores"},
    {R"({"base": "dgx-h100", "shared_cores": 4})", "cluster.shared_cores", ErrorCode::kIllegal,
     "cores"},
    {R"({"base": "no/such.json"})", "cluster.base", ErrorCode::kNotFound, "no/such.json"},
    {R"({"base": "dgx-h100", "nods": 2})", "cluster.nods", ErrorCode::kUnknownKey,
     "did you mean 'nodes'?"},
    {R"({"base": "dgx-h100", "nodes": 0})", "cluster.nodes", ErrorCode::kBadValue, "0"},
    {R"({"base": "dgx-h100", "nodes": 1.5})", "cluster.nodes", ErrorCode::kWrongType, "1.5"},
    {R"({"base": "dgx-h100", "nodes": "8"})", "cluster.nodes", ErrorCode::kWrongType, "whole"},
    {R"({"base": "dgx-h100", "gpus": -8})", "cluster.gpus", ErrorCode::kBadValue, "-8"},
    {R"({"base": "dgx-h100", "gpus": 131073})", "cluster.gpus", ErrorCode::kBadValue,
     "at most 131072"},
    {R"({"base": "dgx-h100", "nodes": 16385})", "cluster.nodes", ErrorCode::kBadValue,
     "at most 131072"},
    {R"({"base": "dgx-h100", "nodes": 4, "gpus": 16})", "cluster.gpus", ErrorCode::kIllegal,
     "16 GPUs are 2 nodes of 8, and nodes says 4"},
    {R"({"base": "dgx-h100", "gpus_per_node": 0})", "cluster.gpus_per_node", ErrorCode::kBadValue,
     "0"},
    {R"({"base": "dgx-h100", "nic": 400})", "cluster.nic", ErrorCode::kBadUnit, "Gb/s"},
    {R"({"base": "dgx-h100", "nic": "400"})", "cluster.nic", ErrorCode::kBadUnit, "has no unit"},
    {R"({"base": "dgx-h100", "nic": "400 GiB"})", "cluster.nic", ErrorCode::kBadUnit, "GiB"},
    {R"({"base": "dgx-h100", "nic": "0 Gb/s"})", "cluster.nic", ErrorCode::kBadValue, "0"},
    {R"({"base": "dgx-h100", "nic": "-1 Gb/s"})", "cluster.nic", ErrorCode::kBadValue, "negative"},
    {R"({"base": "dgx-h100", "pcie": "0 GB/s"})", "cluster.pcie", ErrorCode::kBadValue, "0"},
    {R"({"base": "dgx-h100", "scale_up_bandwidth": "0 GB/s"})", "cluster.scale_up_bandwidth",
     ErrorCode::kBadValue, "0"},
    {R"({"base": "dgx-h100", "network_latency": "2 GB/s"})", "cluster.network_latency",
     ErrorCode::kBadUnit, "GB/s"},
    {R"({"base": "dgx-h100", "nics_per_node": -1})", "cluster.nics_per_node", ErrorCode::kBadValue,
     "-1"},
    {R"({"base": "dgx-h100", "nodes": 2, "nics_per_node": 0})", "cluster.nics_per_node",
     ErrorCode::kIllegal, "cannot reach each other"},
    {R"({"base": "pcie-4090-8", "nodes": 2})", "cluster.nics_per_node", ErrorCode::kIllegal, "NIC"},
    {R"({"base": "pcie-4090-8", "nodes": 2, "nics_per_node": 1})", "cluster.nic",
     ErrorCode::kIllegal, "bandwidth"},
    {R"({"base": "dgx-h100", "oversubscription": 0})", "cluster.oversubscription",
     ErrorCode::kBadValue, "0"},
    {R"({"base": "dgx-h100", "oversubscription": "2:1"})", "cluster.oversubscription",
     ErrorCode::kWrongType, "2:1"},
    {R"({"base": "dgx-h100", "nodes_per_leaf_group": 0})", "cluster.nodes_per_leaf_group",
     ErrorCode::kBadValue, "0"},
    {R"({"base": "dgx-h100", "nodes": 96, "pod_nodes": 40})", "cluster.pod_nodes",
     ErrorCode::kIllegal, "whole leaf groups"},
    {R"({"base": "dgx-h100", "nodes": 3, "sites": 2, "wan": "1 Gb/s", "wan_latency": "1 ms"})",
     "cluster.sites", ErrorCode::kIllegal, "not dealt evenly"},
    {R"({"base": "dgx-h100", "nodes": 2, "sites": 2, "wan_latency": "1 ms"})", "cluster.wan",
     ErrorCode::kIllegal, "without a link"},
    {R"({"base": "dgx-h100", "nodes": 2, "sites": 2, "wan": "1 Gb/s"})", "cluster.wan_latency",
     ErrorCode::kIllegal, "takes time"},
    {R"({"base": "dgx-h100", "nodes": 2, "wan": "1 Gb/s"})", "cluster.wan", ErrorCode::kIllegal,
     "one site"},
    {R"({"base": "gb200-nvl72", "nodes": 4, "nvlink_domain_nodes": 4, "sites": 2,
         "wan": "1 Gb/s", "wan_latency": "1 ms"})",
     "cluster.sites", ErrorCode::kIllegal, "NVLink domains"},
    {R"({"base": "dgx-h100", "rail_optimised": 1})", "cluster.rail_optimised",
     ErrorCode::kWrongType, "true or false"},
    {R"({"base": "dgx-h100", "scale_up": "nvswich"})", "cluster.scale_up", ErrorCode::kBadValue,
     "did you mean 'nvswitch'?"},
    {R"({"base": "dgx-h100", "network": "ethernet"})", "cluster.network", ErrorCode::kBadValue,
     "roce"},
    {R"({"base": "gh200-alps", "nvlink_domain_nodes": 2})", "cluster.nvlink_domain_nodes",
     ErrorCode::kIllegal, "nvswitch"},
    {R"({"base": "gh200-alps", "nvls": true})", "cluster.nvls", ErrorCode::kIllegal, "nvswitch"},
    {R"({"base": "dgx-h100", "accelerator": "h100"})", "cluster.accelerator", ErrorCode::kNotFound,
     "did you mean"},
    {R"({"base": "dgx-h100", "accelerator": {"name": "mine"}})", "cluster.accelerator.sm_count",
     ErrorCode::kMissingKey, "missing"},
    {R"({"accelerator": "l40s-48g", "gpus_per_node": 4})", "cluster.scale_up",
     ErrorCode::kMissingKey, "missing"},
};

TEST(ReadCluster, BadOnesAreRefusedNamingTheKey) {
  for (const BadCluster& bad : kBad) {
    const Errors errors = read(bad.json).errors;
    bool named = false;
    for (const Error& error : errors) {
      named |= error.path == bad.path && error.code == bad.code && error.file == "scenario.json" &&
               (error.message + " " + error.hint).find(bad.word) != std::string::npos;
    }
    EXPECT_TRUE(named) << bad.json << "\n" << to_string(errors);
  }
}

TEST(ReadCluster, ReportsEveryErrorOfADescription) {
  const Errors errors =
      read(R"({"base": "dgx-h100", "nodes": 0, "nic": "fast", "oversubscription": -1, "x": 1})")
          .errors;
  EXPECT_EQ(errors.size(), 4u) << to_string(errors);
}

TEST(ReadCluster, TwoNodesNeedANicAlsoWithoutABase) {
  const std::string whole = std::string("{") + kWhole;
  EXPECT_TRUE(read(whole + "}").errors.empty());
  const Errors errors = read(whole + R"(, "nodes": 2})").errors;
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].path, "cluster.nics_per_node");
}

}  // namespace
}  // namespace stepcast
