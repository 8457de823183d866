// SPDX-License-Identifier: Apache-2.0
// Machines as nvidia-smi, rocm-smi and amd-smi print them, against shipped clusters of the same.
#include "cluster/topology_matrix.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/text/escape.h"
#include "tests/cluster/cluster_from.h"
#include "tests/core/temporary_folder.h"

namespace stepcast {
namespace {

using testing::cluster_from;
using testing::read;

// The matrix of a node with an NVSwitch: each GPU has a NIC on its PCIe switch, and a NIC of the
// storage stands apart. `gap` stands between cells.
std::string dgx_h100(const std::string& gap = "\t") {
  std::string out = "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tGPU4\tGPU5\tGPU6\tGPU7\t";
  for (int i = 0; i < 9; ++i) out += fmt::format("NIC{}\t", i);
  out += "CPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n";
  const auto nic_near = [](int gpu, int nic) {
    return nic == 8 ? "SYS" : gpu == nic ? "PIX" : gpu / 4 == nic / 4 ? "NODE" : "SYS";
  };
  for (int i = 0; i < 8; ++i) {
    out += fmt::format("GPU{}\t", i);
    for (int j = 0; j < 8; ++j) out += (i == j ? " X " : "NV18") + gap;
    for (int j = 0; j < 9; ++j) out += nic_near(i, j) + gap;
    out += i < 4 ? "0-55,112-167\t0\t\tN/A\n" : "56-111,168-223\t1\t\tN/A\n";
  }
  for (int i = 0; i < 9; ++i) {
    out += fmt::format("NIC{}\t", i);
    for (int j = 0; j < 8; ++j) out += nic_near(j, i) + gap;
    for (int j = 0; j < 9; ++j) {
      out += (i == j ? " X " : i == 8 || j == 8 || i / 4 != j / 4 ? "SYS" : "NODE") + gap;
    }
    out += "\n";
  }
  return out +
         "\nLegend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n"
         "\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n";
}

class TopologyMatrix : public ::testing::Test {
 protected:
  std::string base_of(const std::string& text, const std::string& keys) {
    const std::string file = folder_ / "topo.txt";
    std::ofstream(file) << text;
    return fmt::format(R"({{"base": {}, {}}})", json_literal(file), keys);
  }

  testing::TemporaryFolder folder_;
};

const std::string kH100 =
    R"("accelerator": "h100-sxm5-80g", "pcie": "63 GB/s", "nic": "400 Gb/s", "cpu": "intel",
       "network": "infiniband")";

TEST_F(TopologyMatrix, ADgxH100IsTheShippedOne) {
  const ClusterSpec shipped = cluster_from("\"dgx-h100x2\"").spec;
  // Pasted text has blanks for tabs, and cells run together where a line was cut and joined again.
  for (const std::string gap : {"\t", "    ", ""}) {
    const Cluster cluster = cluster_from(base_of(dgx_h100(gap), kH100 + R"(, "nodes": 2)"));
    const ClusterSpec& spec = cluster.spec;
    EXPECT_EQ(spec.gpus_per_node, 8);
    EXPECT_EQ(spec.nics_per_node, 8);  // the storage's is left out
    EXPECT_EQ(cluster.gpus(), 16);
    EXPECT_EQ(spec.scale_up, ScaleUp::kNvSwitch);
    EXPECT_TRUE(spec.nvls);
    EXPECT_EQ(spec.cpu, CpuVendor::kIntel);
    EXPECT_DOUBLE_EQ(spec.scale_up_bandwidth.value(), shipped.scale_up_bandwidth.value());
    EXPECT_DOUBLE_EQ(spec.nic_bandwidth.value(), shipped.nic_bandwidth.value());
    EXPECT_DOUBLE_EQ(spec.pcie_bandwidth.value(), 63e9);
    // Its GPUs hang on two sockets, each on a switch of its own with a NIC.
    std::int64_t hosts = 0, switches = 0;
    for (const Vertex& vertex : cluster.topology.vertices()) {
      hosts += vertex.kind == VertexKind::kHost;
      switches += vertex.kind == VertexKind::kPcieSwitch;
    }
    EXPECT_EQ(hosts, 4);
    EXPECT_GE(switches, 16);
  }
}

// Four GPUs of 12 links each, 4 to every other: a mesh. 18 are the most that a GPU has.
TEST_F(TopologyMatrix, LinksThatAGpuCanHaveAreCables) {
  std::string text = "        GPU0    GPU1    GPU2    GPU3    CPU Affinity\n";
  for (int i = 0; i < 4; ++i) {
    text += fmt::format("GPU{}    ", i);
    for (int j = 0; j < 4; ++j) text += i == j ? " X      " : "NV4     ";
    text += "0-63\n";
  }
  const Cluster cluster =
      cluster_from(base_of(text, R"("accelerator": "a100-sxm4-80g", "pcie": "31.5 GB/s")"));
  EXPECT_EQ(cluster.spec.scale_up, ScaleUp::kNvlinkMesh);
  EXPECT_EQ(cluster.spec.gpus_per_node, 4);
  EXPECT_DOUBLE_EQ(cluster.spec.scale_up_bandwidth.value(), 3 * 4 * 25e9);
}

TEST_F(TopologyMatrix, ARowThatIsCutIsNamed) {
  std::string text = dgx_h100();
  text.erase(text.find("NIC", text.find("GPU3\tNV18")));
  const Errors errors = read(base_of(text.substr(0, text.find("GPU4\tNV18")), kH100)).errors;
  ASSERT_FALSE(errors.empty());
  EXPECT_NE(to_string(errors).find("row GPU"), std::string::npos) << to_string(errors);
  EXPECT_NE(to_string(errors).find("topo.txt"), std::string::npos) << to_string(errors);
}

TEST_F(TopologyMatrix, RatesThatItDoesNotTellAreAskedFor) {
  const std::string errors =
      to_string(read(base_of(dgx_h100(), R"("accelerator": "h100-sxm5-80g")")).errors);
  for (const char* key : {"cluster.pcie", "cluster.nic", "cluster.network"}) {
    EXPECT_NE(errors.find(key), std::string::npos) << errors;
  }
}

TEST_F(TopologyMatrix, SomeOtherTextIsRefused) {
  const std::string errors = to_string(read(base_of("all is well\n", kH100)).errors);
  EXPECT_NE(errors.find("nvidia-smi topo -m"), std::string::npos) << errors;
}

std::string amd_table(const std::string& title, const std::vector<std::string>& names,
                      const std::string& self, const std::string& other) {
  std::string out = title + "\n       ";
  for (const std::string& name : names) out += name + "         ";
  out += "\n";
  for (const std::string& row : names) {
    out += row + "   ";
    for (const std::string& column : names) out += (row == column ? self : other) + "           ";
    out += "\n";
  }
  return out + "\n";
}

std::string rule(const std::string& title) { return "======= " + title + " ======="; }

TEST_F(TopologyMatrix, AnMi300xOfRocmSmiIsTheShippedOne) {
  std::vector<std::string> names;
  for (int i = 0; i < 8; ++i) names.push_back(fmt::format("GPU{}", i));
  std::string text = rule("ROCm System Management Interface") + "\n" +
                     amd_table(rule("Weight between two GPUs"), names, "0", "15") +
                     amd_table(rule("Hops between two GPUs"), names, "0", "1") +
                     amd_table(rule("Link Type between two GPUs"), names, "0", "XGMI") +
                     rule("Numa Nodes") + "\n";
  for (int i = 0; i < 8; ++i) {
    text += fmt::format(
        "GPU[{0}]\t\t: (Topology) Numa Node: {1}\n"
        "GPU[{0}]\t\t: (Topology) Numa Affinity: {1}\n",
        i, i / 4);
  }
  text += rule("End of ROCm SMI Log") + "\n";
  const Cluster cluster = cluster_from(base_of(
      text,
      R"("accelerator": "mi300x-192g", "pcie": "63 GB/s", "nic": "400 Gb/s", "nics_per_node": 8,
               "network": "infiniband", "nodes": 2)"));
  const ClusterSpec shipped = cluster_from("\"azure-nd-mi300x-v5x2\"").spec;
  EXPECT_EQ(cluster.spec.scale_up, shipped.scale_up);
  EXPECT_EQ(cluster.spec.gpus_per_node, shipped.gpus_per_node);
  EXPECT_EQ(cluster.spec.nics_per_node, shipped.nics_per_node);
  EXPECT_DOUBLE_EQ(cluster.spec.scale_up_bandwidth.value(), shipped.scale_up_bandwidth.value());
  EXPECT_DOUBLE_EQ(cluster.spec.nic_bandwidth.value(), shipped.nic_bandwidth.value());
}

// Two hops weigh 30: only pairs with a link of their own have one.
TEST_F(TopologyMatrix, PairsOfAmdSmiTwoHopsApartHaveNoLink) {
  const std::vector<std::string> names = {"0000:c1:00.0", "0000:c6:00.0", "0000:c9:00.0"};
  std::string text = amd_table("LINK TYPE TABLE:", names, "SELF", "XGMI");
  text += "WEIGHT TABLE:\n       " + names[0] + " " + names[1] + " " + names[2] + "\n" + names[0] +
          " 0 15 30\n" + names[1] + " 15 0 15\n" + names[2] + " 30 15 0\n";
  const Cluster cluster =
      cluster_from(base_of(text, R"("accelerator": "mi300x-192g", "pcie": "63 GB/s")"));
  std::int64_t cables = 0;
  for (const Link& link : cluster.topology.links()) cables += link.kind == LinkKind::kNvlink;
  EXPECT_EQ(cables, 2 * 2);  // two cables, each in both directions
}

}  // namespace
}  // namespace stepcast
