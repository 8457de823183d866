// SPDX-License-Identifier: Apache-2.0
// Machines as NCCL writes them: the figures of shipped clusters of the same machines come out.
#include "cluster/nccl_topology.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "cluster/write_cluster.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "tests/cluster/cluster_from.h"

namespace stepcast {
namespace {

using testing::cluster_from;
using testing::read;

std::string file_of(const std::string& name) {
  return source_folder() + "/tests/data/topologies/" + name + ".xml";
}

std::string based_on(const std::string& name, const std::string& more = "") {
  return fmt::format(R"({{"base": "{}"{}{}}})", file_of(name), more.empty() ? "" : ", ", more);
}

BytesPerSecond capacity_between(const Cluster& cluster, const std::string& from,
                                const std::string& to) {
  for (const Link& link : cluster.topology.links()) {
    if (cluster.topology.name(link.from) == from && cluster.topology.name(link.to) == to) {
      return link.capacity;
    }
  }
  return {};
}

void expect_same_figures(const ClusterSpec& read, const ClusterSpec& shipped) {
  EXPECT_EQ(read.gpus_per_node, shipped.gpus_per_node);
  EXPECT_EQ(read.nics_per_node, shipped.nics_per_node);
  EXPECT_EQ(read.scale_up, shipped.scale_up);
  EXPECT_EQ(read.network, shipped.network);
  EXPECT_EQ(read.nvls, shipped.nvls);
  EXPECT_EQ(read.accelerator.name, shipped.accelerator.name);
  EXPECT_DOUBLE_EQ(read.scale_up_bandwidth.value(), shipped.scale_up_bandwidth.value());
  EXPECT_DOUBLE_EQ(read.nic_bandwidth.value(), shipped.nic_bandwidth.value());
}

TEST(NcclTopology, ADgxA100IsTheShippedOne) {
  const Cluster cluster = cluster_from(based_on("dgx-a100", R"("nodes": 2)"));
  expect_same_figures(cluster.spec, cluster_from("\"dgx-a100-80gx2\"").spec);
  EXPECT_EQ(cluster.gpus(), 16);
  EXPECT_EQ(cluster.spec.cpu, CpuVendor::kAmd);
  // Generation 4, 16 lanes of 16 GT/s in a code of 128 in 130 bits.
  EXPECT_NEAR(cluster.spec.pcie_bandwidth.value(), 16e9 * 16 / 8 * 128 / 130, 1);
  // Zen 2 counts 16 GB/s between two sockets.
  EXPECT_DOUBLE_EQ(capacity_between(cluster, "node0/host0", "node0/host1").value(), 16e9);
}

// Both GPUs below one switch have both of its NICs, one on their own switch below.
TEST(NcclTopology, AGpuSendsOverTheNicBesideIt) {
  const Cluster cluster = cluster_from(based_on("dgx-a100", R"("nodes": 2)"));
  for (std::size_t gpu = 0; gpu < 8; ++gpu) {
    bool leaves_by_its_own = false;
    for (const LinkShare& share : cluster.topology.route(DeviceId(gpu), DeviceId(gpu + 8))) {
      const Link& link = cluster.topology.links()[share.link.index()];
      const std::string nic = fmt::format("node0/nic{}", gpu);
      if (cluster.topology.name(link.from) == nic) leaves_by_its_own |= share.fraction == 1;
    }
    EXPECT_TRUE(leaves_by_its_own) << gpu;
  }
}

TEST(NcclTopology, AFileWrittenByHandIsToldItsNvlinks) {
  const std::string told = R"("accelerator": "h100-sxm5-80g", "nodes": 2)";
  const auto untold = read(based_on("p5-48xlarge", told));
  ASSERT_EQ(untold.errors.size(), 1u);
  EXPECT_EQ(untold.errors.front().path, "cluster.scale_up_bandwidth");
  const Cluster cluster =
      cluster_from(based_on("p5-48xlarge", told + R"(, "scale_up_bandwidth": "450 GB/s")"));
  expect_same_figures(cluster.spec, cluster_from("\"aws-p5x2\"").spec);
}

TEST(NcclTopology, GpusMayBeJoinedToEachOther) {
  const Cluster cluster = cluster_from(based_on("dgx-1v"));
  EXPECT_EQ(cluster.spec.scale_up, ScaleUp::kNvlinkMesh);
  EXPECT_DOUBLE_EQ(cluster.spec.scale_up_bandwidth.value(), 6 * 25e9);
  EXPECT_DOUBLE_EQ(capacity_between(cluster, "node0/gpu0", "node0/gpu1").value(), 25e9);
  EXPECT_DOUBLE_EQ(capacity_between(cluster, "node0/gpu0", "node0/gpu3").value(), 50e9);
  EXPECT_EQ(capacity_between(cluster, "node0/gpu0", "node0/gpu5").value(), 0);
  EXPECT_EQ(cluster.spec.cpu, CpuVendor::kIntel);
  EXPECT_DOUBLE_EQ(capacity_between(cluster, "node0/host0", "node0/host1").value(), 6e9);
}

TEST(NcclTopology, PartsOfItFailLikeOthers) {
  const Cluster cluster =
      cluster_from(based_on("dgx-a100", R"("nodes": 2, "fail": "node1/nic3,node0/nic1=50%")"));
  EXPECT_DOUBLE_EQ(capacity_between(cluster, "node0/nic1", "leaf1").value(), 12.5e9);
  EXPECT_EQ(capacity_between(cluster, "node1/nic3", "leaf3").value(), 0);
}

// A cluster of one file is written out whole, because a base takes few of the keys beside it.
TEST(NcclTopology, ReadsBackAsWhatItIs) {
  const Cluster cluster = cluster_from(based_on("dgx-1v", R"("nodes": 3)"));
  const Cluster again = cluster_from(json_text(to_json(cluster)));
  EXPECT_EQ(to_json(again), to_json(cluster));
  EXPECT_EQ(again.gpus(), 24);
}

struct BadFile {
  const char* text;
  const char* message;
};

TEST(NcclTopology, SaysWhatAFileLacks) {
  const std::string gpu =
      R"(<pci busid="0:1" class="0x030200" device="0x2330"><gpu dev="0" sm="90">)";
  const std::string deep = [] {
    std::string out;
    for (int i = 0; i < 100'000; ++i) out += "<pci>";
    return out;
  }();
  const auto repeated = [](const std::string& text) {
    std::string out;
    for (int i = 0; i < 100'000; ++i) out += text;
    return out;
  };
  const std::string behind_text = repeated("<a>/>"), in_quotes = repeated("<a b='/>'>");
  const std::string behind_comment = "<!-- " + repeated("</") + "-->" + deep;
  const std::string link_to_nobody = "<system><cpu>" + gpu +
                                     R"(<nvlink target="0:2" count="4" tclass="0x030200"/>)"
                                     "</gpu></pci></cpu></system>";
  const BadFile bad[] = {
      {"", "there is no XML element"},
      {"system", "this is no XML"},
      {"<system><cpu></system>", "this is no XML"},
      {"<topology version=\"2.0\"/>", "the first element is <topology>"},
      {"<system/>", "there is no <cpu>"},
      {"<system><cpu/></system>", "has no GPU"},
      {"<system><gpu/></system>", "<gpu> stands in <system>"},
      {"<system><cpu><gpu/></cpu></system>", "<gpu> stands in <cpu>"},
      {link_to_nobody.c_str(), "leads to 0:2, where no GPU"},
      {deep.c_str(), "nested more than 64 deep"},
      {behind_text.c_str(), "nested more than 64 deep"},
      {in_quotes.c_str(), "nested more than 64 deep"},
      {behind_comment.c_str(), "nested more than 64 deep"},
      {"<!DOCTYPE topology SYSTEM \"hwloc2.dtd\"><topology/>", "has a document type"},
      {"<system><cpu><pci busid=\"7\" class=\"0x030200\" device=\"0x9999\"/></cpu></system>",
       "of the device 0x9999"},
  };
  const std::string file = ::testing::TempDir() + "nccl_topology_test.xml";
  for (const BadFile& one : bad) {
    std::ofstream(file) << one.text;
    const auto found = read(fmt::format(R"({{"base": "{}"}})", file));
    ASSERT_EQ(found.errors.size(), 1u) << one.message;
    EXPECT_NE(to_string(found.errors.front()).find(one.message), std::string::npos)
        << to_string(found.errors.front());
  }
  std::filesystem::remove(file);
}

TEST(NcclTopology, AnAcceleratorOfAnotherKindIsRefused) {
  const auto found = read(based_on("dgx-a100", R"("accelerator": "h100-sxm5-80g")"));
  ASSERT_EQ(found.errors.size(), 1u);
  EXPECT_EQ(found.errors.front().path, "cluster.accelerator");
}

TEST(NcclTopology, AsManyNodesAsAGraphMayHave) {
  const auto found = read(based_on("dgx-a100", R"("nodes": 100000)"));
  ASSERT_FALSE(found.errors.empty());
  EXPECT_NE(found.errors.front().message.find("more than this program takes"), std::string::npos);
}

}  // namespace
}  // namespace stepcast
