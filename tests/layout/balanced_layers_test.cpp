// SPDX-License-Identifier: Apache-2.0
#include "layout/balanced_layers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "scenario_from.h"

namespace stepcast {
namespace {

using Layers = std::vector<std::int64_t>;

Scenario pipeline_of(const std::string& model, std::int64_t pp, const std::string& layers) {
  return testing::scenario_from(fmt::format(
      R"({{"stepcast": 1, "model": {}, "cluster": "dgx-h100x4",
           "training": {{"global_batch": 64, "sequence_length": 8192}},
           "layout": {{"pp": {}, "stage_layers": {}}}}})",
      model, pp, layers));
}

// A token of Llama-3.1-8B meets 218.1 M weights and half of 8,192 others in a layer, 0.570 GFLOP
// forward, and 525.3 M weights of the head, 1.051 GFLOP: 1.84 layers. 32 and 1.84 over four stages
// are 8.46, so that the last one takes 6 and waits 1.16 of a layer; with 7 it would be the longest.
TEST(BalancedLayers, TheStageWithTheHeadTakesFewer) {
  EXPECT_EQ(pipeline_of(R"("llama-3.1-8b")", 4, R"("balanced")").layout.stage_layers,
            (Layers{9, 9, 8, 6}));
}

TEST(BalancedLayers, IsAWordOfTheKeyAndNothingElseIs) {
  const Scenario one_stage = pipeline_of(R"("llama-3.1-8b")", 1, R"("balanced")");
  EXPECT_TRUE(one_stage.layout.stage_layers.empty());
  const auto document = JsonDocument::parse(
      R"({"stepcast": 1, "model": "gpt2", "cluster": "dgx-h100", "training": {"global_batch": 8},
          "layout": {"pp": 2, "stage_layers": "even"}})",
      "test.json");
  ASSERT_TRUE(document);
  const auto scenario = read_scenario(**document, testing::source_folders());
  ASSERT_FALSE(scenario);
  EXPECT_NE(to_string(scenario.error()).find("layout.stage_layers"), std::string::npos);
  EXPECT_NE(to_string(scenario.error()).find("balanced"), std::string::npos);
}

// Two stages: neither would be shorter, as the longer of the two, with a layer of the other.
TEST(BalancedLayers, NoLayerIsBetterOnTheOtherStage) {
  std::mt19937 random(3);
  for (int round = 0; round < 40; ++round) {
    const std::int64_t layers = 3 + static_cast<std::int64_t>(random() % 30);
    const std::int64_t vocab = 64 * (1 + static_cast<std::int64_t>(random() % 6000));
    const std::string model =
        fmt::format(R"({{"layers": {}, "hidden": 1024, "heads": 16, "ffn": 4096, "vocab": {}}})",
                    layers, vocab);
    const Scenario scenario = pipeline_of(model, 2, R"("balanced")");
    const Layers dealt = scenario.layout.stage_layers;
    ASSERT_EQ(dealt.size(), 2u);
    EXPECT_EQ(std::accumulate(dealt.begin(), dealt.end(), std::int64_t{0}), layers);
    const double layer = 2 * (4.0 * 1024 * 1024 + 2.0 * 1024 * 4096) + 2.0 * 8192 * 1024;
    const double head = 2.0 * 1024 * static_cast<double>(vocab) / layer;
    const double first = static_cast<double>(dealt[0]);
    const double last = static_cast<double>(dealt[1]) + head;
    const double longest = std::max(first, last);
    if (dealt[0] > 0) {
      EXPECT_LE(longest, std::max(first - 1, last + 1) + 1e-9);
    }
    if (dealt[1] > 0) {
      EXPECT_LE(longest, std::max(first + 1, last - 1) + 1e-9);
    }
  }
}

// Each stage of an interleaved pipeline has several chunks, and none but the ends is empty.
TEST(BalancedLayers, ChunksOfAStageShareItsLayers) {
  const Scenario scenario = testing::scenario_from(
      R"({"stepcast": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100x4",
          "training": {"global_batch": 64, "sequence_length": 8192},
          "layout": {"pp": 4, "virtual_stages": 4, "schedule": "interleaved",
                     "stage_layers": "balanced"}})");
  const Layers& dealt = scenario.layout.stage_layers;
  ASSERT_EQ(dealt.size(), 16u);
  EXPECT_EQ(std::accumulate(dealt.begin(), dealt.end(), std::int64_t{0}), 32);
  Layers of_stage(4, 0);
  for (std::size_t c = 0; c < dealt.size(); ++c) {
    of_stage[c % 4] += dealt[c];
    if (c > 0 && c + 1 < dealt.size()) {
      EXPECT_GE(dealt[c], 1);
    }
  }
  EXPECT_EQ(of_stage, (Layers{9, 9, 8, 6}));
}

}  // namespace
}  // namespace stepcast
