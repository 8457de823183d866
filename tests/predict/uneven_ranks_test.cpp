// SPDX-License-Identifier: Apache-2.0
// Steps on GPUs that are not all alike: slow ones and those of other models.
#include "predict/uneven_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/json.h"
#include "predict/prediction.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;
using testing::source_folders;

GptCase on(const std::string& cluster, int tp, int dp) {
  GptCase c;
  c.layers = 8;
  c.hidden = 4096;
  c.heads = 32;
  c.sequence = 2048;
  c.tp = tp;
  c.dp = dp;
  c.global_batch = dp * 4;
  c.cluster = R"("base": "dgx-a100-80g")" + cluster;
  return c;
}

Prediction forecast(const GptCase& c) { return predict(gpt(c), source_folders()).value(); }

const RankClass& class_of(const Prediction& prediction, std::int32_t rank) {
  return *std::ranges::find_if(prediction.rank_classes, [&](const RankClass& one) {
    return std::ranges::find(one.ranks, RankId(rank)) != one.ranks.end();
  });
}

TEST(Uneven, KernelsOfASlowGpuTakeLongerAndTheOthersWaitForIt) {
  const Prediction whole = forecast(on("", 1, 4));
  const Prediction slow = forecast(on(R"(, "fail": "node0/gpu1=50%")", 1, 4));
  ASSERT_EQ(slow.rank_classes.size(), 2u);
  const RankClass &own = class_of(slow, 1), &other = class_of(slow, 0);
  const RankClass& sound = whole.rank_classes.front();
  EXPECT_NEAR(own.time.compute.value(), 2 * sound.time.compute.value(),
              1e-6 * own.time.compute.value());
  EXPECT_NEAR(other.time.compute.value(), sound.time.compute.value(),
              1e-6 * sound.time.compute.value());
  // All of what the slow one computes longer, in passes and update, is in the step.
  const double more = (sound.time.compute + sound.time.optimizer).value();
  EXPECT_NEAR((slow.step_time - whole.step_time).value(), more, 0.01 * more);
  EXPECT_EQ(own.gpu, "a100-sxm4-80g at 50 %");
  EXPECT_TRUE(sound.gpu.empty());
}

TEST(Uneven, AllGpusAtHalfTheSpeedAreOneSlowCluster) {
  const Prediction one = forecast(on(R"(, "fail": "node0/gpu1=50%")", 1, 4));
  const Prediction all = forecast(on(R"(, "fail": "node0=50%")", 1, 4));
  EXPECT_EQ(all.rank_classes.size(), 1u);
  EXPECT_NEAR(all.step_time.value(), one.step_time.value(), 1e-3 * one.step_time.value());
}

TEST(Uneven, AGroupThatMeetsInEveryLayerGoesAtThePaceOfItsSlowest) {
  const Prediction slow = forecast(on(R"(, "fail": "node0/gpu1=50%")", 2, 2));
  const Prediction all = forecast(on(R"(, "fail": "node0=50%")", 2, 2));
  EXPECT_NEAR(slow.step_time.value(), all.step_time.value(), 0.01 * all.step_time.value());
  // Its neighbour waits at the collectives inside the layers, the other group at the gradients.
  const RankClass &own = class_of(slow, 1), &neighbour = class_of(slow, 0);
  const double waits = (own.time.compute - neighbour.time.compute).value();
  EXPECT_NEAR(neighbour.time.compute.value(), 0.5 * own.time.compute.value(),
              1e-6 * own.time.compute.value());
  EXPECT_NEAR((neighbour.time.exposed_tp - own.time.exposed_tp).value(), waits, 0.01 * waits);
}

TEST(Uneven, EachModelHasThePricesOfItsProfile) {
  GptCase c = on(R"(, "gpus_per_node": 2, "accelerator_of": "node1=h100-sxm5-80g")", 1, 4);
  const Prediction mixed = forecast(c);
  const Prediction old = forecast(on(R"(, "gpus_per_node": 2)", 1, 4));
  const Prediction fresh =
      forecast(on(R"(, "gpus_per_node": 2, "accelerator": "h100-sxm5-80g")", 1, 4));
  ASSERT_EQ(mixed.rank_classes.size(), 2u);
  EXPECT_NEAR(class_of(mixed, 0).time.compute.value(),
              old.rank_classes.front().time.compute.value(), 1e-9);
  EXPECT_NEAR(class_of(mixed, 2).time.compute.value(),
              fresh.rank_classes.front().time.compute.value(), 1e-9);
  EXPECT_LT(class_of(mixed, 2).time.compute, 0.7 * class_of(mixed, 0).time.compute);
  EXPECT_NEAR(mixed.step_time.value(), old.step_time.value(), 0.02 * old.step_time.value());
  // Their peaks add up.
  const auto peak = [](const Prediction& one) { return 1 / (one.mfu * one.step_time.value()); };
  EXPECT_NEAR(peak(mixed), (peak(old) + peak(fresh)) / 2, 1e-9 * peak(mixed));
}

TEST(Uneven, MemoryIsThatOfTheGpuWithTheLeastRoom) {
  GptCase c = on(R"(, "gpus_per_node": 1, "accelerator_of": "node1=a100-sxm4-40g")", 1, 2);
  c.layers = 10;
  const Prediction mixed = forecast(c);
  c.cluster = R"("base": "dgx-a100-80g", "gpus_per_node": 1)";
  const Prediction large = forecast(c);
  EXPECT_TRUE(large.fits);
  EXPECT_GT(large.peak_device, 40'000'000'000);
  EXPECT_FALSE(mixed.fits);
  EXPECT_EQ(mixed.device_memory,
            gpt(on(R"(, "accelerator": "a100-sxm4-40g")", 1, 1)).cluster.spec.accelerator.memory);
  EXPECT_EQ(class_of(mixed, 0).device_memory, large.device_memory);
}

TEST(Uneven, APrecisionIsForbiddenThatOneOfTheModelsLacks) {
  GptCase c = on("", 1, 2);
  c.cluster = R"("base": "dgx-h100", "accelerator_of": "node0/gpu1=a100-sxm4-80g")";
  c.precision = "fp8";
  auto document = JsonDocument::parse(text_of(c), "test.json");
  const auto scenario = read_scenario(**document, source_folders());
  ASSERT_FALSE(scenario.has_value());
  EXPECT_NE(to_string(scenario.error()).find("a100-sxm4-80g has no fp8 arithmetic"),
            std::string::npos)
      << to_string(scenario.error());
}

}  // namespace
}  // namespace stepcast
