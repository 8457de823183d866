// SPDX-License-Identifier: Apache-2.0
// `auto` on a model whose activations fill the device: the order that it searches has to fit.
#include <gtest/gtest.h>

#include "predict/prediction.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::scenario_from;
using testing::source_folders;

Prediction prediction(const std::string& schedule, int virtual_stages, int sequence = 4096) {
  const Scenario scenario = scenario_from(
      R"({"stepcast": 1, "model": "llama-3.1-70b", "cluster": {"base": "dgx-h100", "nodes": 4},
          "training": {"global_batch": 32, "sequence_length": )" +
      std::to_string(sequence) + R"(},
          "layout": {"tp": 4, "pp": 8, "schedule": ")" +
      schedule + R"(", "virtual_stages": )" + std::to_string(virtual_stages) + "}}");
  const auto out = predict(scenario, source_folders());
  EXPECT_TRUE(out.has_value()) << to_string(out.error());
  return out.value_or(Prediction{});
}

// ZB-1p and ZB-V are shorter than 1F1B and V-Half here, and do not fit.
TEST(AutoSchedule, IsShorterThanOthersThatFitAndFitsItself) {
  EXPECT_FALSE(prediction("zb-1p", 1).fits);
  EXPECT_FALSE(prediction("zb-v", 2).fits);
  const Prediction straight = prediction("auto", 1), folded = prediction("auto", 2);
  EXPECT_TRUE(straight.fits);
  EXPECT_TRUE(folded.fits);
  EXPECT_LT(straight.step_time.value(), prediction("1f1b", 1).step_time.value());
  EXPECT_LT(folded.step_time.value(), prediction("v-half", 2).step_time.value());
}

// With shorter sequences ZB-H1 fits by a hair, where the quick estimate of a stage's room says that
// it does not.
TEST(AutoSchedule, TakesAnOrderThatFitsByItsForecast) {
  const Prediction other = prediction("zb-h1", 1, 3456), found = prediction("auto", 1, 3456);
  ASSERT_TRUE(other.fits);
  EXPECT_TRUE(found.fits);
  EXPECT_LE(found.step_time.value(), other.step_time.value() * (1 + 1e-9));
}

}  // namespace
}  // namespace stepcast
