// SPDX-License-Identifier: Apache-2.0
// The waterfall tells every instant of the critical rank's step once: as ideal time, or as a loss
// or a wait, none of which is negative.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "predict/prediction.h"
#include "random_scenario.h"
#include "report/breakdown.h"

namespace stepcast {
namespace {

using testing::GptCase;
using testing::scenario_from;
using testing::source_folders;
using testing::text_of;

Prediction forecast(const Scenario& scenario) {
  auto prediction = predict(scenario, source_folders());
  EXPECT_TRUE(prediction) << (prediction ? std::string() : to_string(prediction.error()));
  return prediction ? std::move(*prediction) : Prediction{};
}

void expect_whole(const std::vector<TimePart>& parts, Seconds step, const std::string& text) {
  Seconds sum;
  for (const TimePart& part : parts) {
    EXPECT_GE(part.time.value(), 0) << part.key << "\n" << text;
    EXPECT_FALSE(std::signbit(part.time.value())) << part.key << "\n" << text;
    sum += part.time;
  }
  EXPECT_NEAR(sum / step, 1, 1e-12) << text;
}

class RandomWaterfall : public ::testing::TestWithParam<const char*> {};

TEST_P(RandomWaterfall, HasNoNegativeTermAndAddsUpToTheStepTime) {
  constexpr int kScenarios = 60;
  testing::ScenarioDraw draw(20261125, testing::all_that_forecasts());
  int checked = 0, with_imbalance = 0;
  for (; checked < kScenarios; ++checked) {
    const testing::DrawnScenario drawn = draw.draw(GetParam());
    const Prediction prediction = forecast(drawn.scenario);
    ASSERT_GT(prediction.step_time.value(), 0) << drawn.text;
    expect_whole(steps_of(prediction.waterfall), prediction.step_time, drawn.text);
    expect_whole(parts_of(prediction.time), prediction.step_time, drawn.text);
    EXPECT_GT(prediction.waterfall.ideal.value(), 0) << drawn.text;
    with_imbalance += prediction.waterfall.imbalance.value() > 0 ? 1 : 0;
  }
  EXPECT_EQ(checked, kScenarios);
  const bool has_stages = std::string(GetParam()) != "fsdp";
  EXPECT_GE(with_imbalance, has_stages ? 1 : 0);
}

INSTANTIATE_TEST_SUITE_P(Frameworks, RandomWaterfall,
                         ::testing::Values("megatron", "fsdp", "deepspeed", "native"));

// Rank 0 ends last, and the other stage has the logits: this rank computes less than the mean, and
// waits for the other one.
TEST(Waterfall, OfARankThatComputesLessThanTheMeanHasABubbleInsteadOfAnImbalance) {
  const Scenario scenario = scenario_from(
      R"({"stepcast": 1, "model": "gpt2", "cluster": {"base": "dgx-h100", "gpus": 2},)"
      R"("training": {"global_batch": 16}, "layout": {"pp": 2}})");
  const Prediction prediction = forecast(scenario);
  ASSERT_EQ(prediction.rank_classes.size(), 2u);
  ASSERT_LT(prediction.time.compute, std::max(prediction.rank_classes[0].time.compute,
                                              prediction.rank_classes[1].time.compute));
  expect_whole(steps_of(prediction.waterfall), prediction.step_time, "gpt2");
  EXPECT_EQ(prediction.waterfall.imbalance, Seconds(0));
  EXPECT_GT(prediction.waterfall.rest.bubble, Seconds(0));
}

// Stage 0 ends last, because its backward passes are the last. It has 6 of 8 layers.
TEST(Waterfall, ImbalanceIsWhatTheCriticalRankComputesBeyondTheMean) {
  GptCase c;
  c.layers = 8;
  c.pp = 2;
  c.extra_layout = R"(, "stage_layers": [6, 2])";
  const Prediction prediction = forecast(scenario_from(text_of(c)));
  ASSERT_EQ(prediction.rank_classes.size(), 2u);
  const Seconds own = prediction.rank_classes[0].time.compute;
  const Seconds other = prediction.rank_classes[1].time.compute;
  ASSERT_EQ(prediction.time.compute, own);
  ASSERT_GT(own, other);
  EXPECT_NEAR(prediction.waterfall.imbalance / ((own - other) / 2), 1, 1e-9);
  expect_whole(steps_of(prediction.waterfall), prediction.step_time, "6 and 2 layers");
}

// One GPU computes what the model asks for and nothing else. Fused attention skips the masked half
// of the scores; unfused attention computes it.
TEST(Waterfall, IdealTimeIsThatOfTheModelsFlopsAtTheDensePeak) {
  for (const bool fused : {true, false}) {
    GptCase c;
    c.attention = fused ? "flash" : "unfused";
    const Scenario scenario = scenario_from(text_of(c));
    const Prediction prediction = forecast(scenario);
    const auto peak = scenario.cluster.spec.accelerator.peak(DataType::kBf16);
    ASSERT_TRUE(peak);
    const Seconds expected = model_flops(scenario, fused) / *peak;
    EXPECT_NEAR(prediction.waterfall.ideal / expected, 1, 1e-9) << c.attention;
  }
}

}  // namespace
}  // namespace stepcast
