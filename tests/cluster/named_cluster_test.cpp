// SPDX-License-Identifier: Apache-2.0
#include "cluster/named_cluster.h"

#include <gtest/gtest.h>

#include <map>

#include "cluster/cluster_from.h"
#include "core/data_name.h"
#include "core/json_tree.h"
#include "core/text/escape.h"

namespace stepcast::testing {
namespace {

struct Reading {
  const char* text;
  const char* cluster;
  std::int64_t nodes, gpus;
};

TEST(NamedCluster, AGpuStandsForANodeOrACardOfIt) {
  const Reading readings[] = {
      {"dgx-h100", "dgx-h100", 1, 8},
      {"dgx-h100x4", "dgx-h100", 4, 32},
      {"4xdgx-h100", "dgx-h100", 4, 32},
      {"h100", "dgx-h100", 1, 8},
      {"H100-SXM5", "dgx-h100", 1, 8},
      {"8xh100", "dgx-h100", 1, 8},
      {"16xH100", "dgx-h100", 2, 16},
      {"h100x2", "dgx-h100", 2, 16},
      {"a100", "dgx-a100-80g", 1, 8},
      {"A100 40GB", "dgx-a100-40g", 1, 8},
      {"h200", "dgx-h200", 1, 8},
      {"b200", "dgx-b200", 1, 8},
      {"mi300x", "azure-nd-mi300x-v5", 1, 8},
      {"mi355x", "mi355x-8", 1, 8},
      {"mi355xx8", "mi355x-8", 8, 64},
      {"rtx4090", "pcie-4090-8", 1, 1},
      {"RTX 4090", "pcie-4090-8", 1, 1},
      {"4xrtx4090", "pcie-4090-8", 1, 4},
      {"rtx4090x8", "pcie-4090-8", 1, 8},
      {"l40s", "l40s-8", 1, 1},
      {"RTX PRO 6000", "rtx-pro-6000-8", 1, 1},
      {"2xa6000", "pcie-a6000-8", 1, 2},
      {"3090", "pcie-3090-8", 1, 1},
      {"a10g", "aws-g5-48xlarge", 1, 1},
      {"vr200", "vr200-nvl72", 18, 72},
      {"gb200", "gb200-nvl72", 18, 72},
      {"pcie-4090-8", "pcie-4090-8", 1, 8},
  };
  for (const Reading& reading : readings) {
    const Cluster cluster = cluster_from(json_text(SortedJson(reading.text)));
    EXPECT_EQ(cluster.spec.name, reading.cluster) << reading.text;
    EXPECT_EQ(cluster.spec.nodes, reading.nodes) << reading.text;
    EXPECT_EQ(cluster.gpus(), reading.gpus) << reading.text;
    // A name of the cluster's own needs no explanation.
    const bool own = std::string(reading.text).find(reading.cluster) != std::string::npos;
    EXPECT_EQ(cluster.spec.reading.empty(), own) << reading.text << cluster.spec.reading;
  }
}

TEST(NamedCluster, AStatedSizeGoesBeforeThatOfACard) {
  EXPECT_EQ(cluster_from(R"({"base": "rtx4090"})").gpus(), 1);
  EXPECT_EQ(cluster_from(R"({"base": "rtx4090", "nodes": 1})").gpus(), 8);
  EXPECT_EQ(cluster_from(R"({"base": "rtx4090", "gpus": 3})").gpus(), 3);
}

std::string hint_of(const std::string& text) {
  const ReadResult refused = read(json_text(SortedJson(text)));
  EXPECT_EQ(refused.errors.size(), 1u) << text;
  if (refused.errors.empty()) return "";
  EXPECT_EQ(refused.errors.front().message, "there is no cluster '" + text + "'");
  return refused.errors.front().hint;
}

TEST(NamedCluster, WhatFitsSeveralIsRefusedWithTheirNames) {
  EXPECT_EQ(hint_of("dgx-a100"), "did you mean dgx-a100-40g or dgx-a100-80g?");
  EXPECT_EQ(hint_of("dgx-h101"), "did you mean 'dgx-h100'?");
  EXPECT_EQ(hint_of("rtx6000"), "`stepcast show clusters` lists all; a GPU's name works too");
  EXPECT_NE(hint_of("h100,a100").find("plan --clusters h100,a100"), std::string::npos);
}

// Nobody is surprised by which of two clusters a name means, and every data sheet is reached.
TEST(NamedCluster, EveryNameMeansOneClusterAndEveryAcceleratorHasOne) {
  const auto clusters = list_clusters(kTopologies);
  ASSERT_TRUE(clusters) << to_string(clusters.error());
  std::map<std::string, std::string> meant;  // by plain name
  int given = 0;
  for (const ClusterSpec& spec : *clusters) {
    EXPECT_TRUE(meant.try_emplace(plain_name(spec.name), spec.name).second) << spec.name;
    const auto document = JsonDocument::load(kTopologies + "/clusters/" + spec.name + ".json");
    ASSERT_TRUE(document);
    for (const char* key : {"names_of_node", "names_of_card"}) {
      const SortedJson& file = (*document)->root().raw();
      for (const auto& name : file.value(key, SortedJson::array())) {
        const std::string text = name.get<std::string>();
        EXPECT_TRUE(meant.try_emplace(plain_name(text), spec.name).second) << text;
        const auto found = find_cluster_name(text, kTopologies);
        ASSERT_TRUE(found) << text;
        EXPECT_EQ(found->cluster, spec.name) << text;
        ++given;
      }
    }
  }
  EXPECT_GT(given, 50);
  const auto accelerators = list_accelerators(kTopologies);
  ASSERT_TRUE(accelerators);
  EXPECT_FALSE(accelerators->empty());
  for (const Accelerator& accelerator : *accelerators) {
    const auto found = find_cluster_name(accelerator.name, kTopologies);
    ASSERT_TRUE(found) << accelerator.name;
    const Cluster cluster = cluster_from(json_text(SortedJson(accelerator.name)));
    EXPECT_EQ(cluster.spec.accelerator.name, accelerator.name);
  }
}

}  // namespace
}  // namespace stepcast::testing
