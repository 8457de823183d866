// SPDX-License-Identifier: Apache-2.0
// Figures that a forecast has of its step time.
#include <gtest/gtest.h>

#include <string>

#include "predict/prediction.h"
#include "predict/pricing.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::scenario_from;
using testing::source_folders;

// A mask leaves most of a large model's work, and less of a small one's with the same sequences.
TEST(Prediction, ReadsTheCausalCountWhereItIsMuchLess) {
  const auto reads_causal = [](const char* model, int sequence) {
    const auto prediction =
        predict(scenario_from(std::string(R"({"stepcast": 1, "model": ")") + model +
                              R"(", "cluster": "dgx-h100", "training": {"global_batch": 8,
                               "sequence_length": )" +
                              std::to_string(sequence) + R"(}, "layout": {"tp": 8}})"),
                source_folders());
    EXPECT_TRUE(prediction) << to_string(prediction.error());
    return prediction && prediction->reads_causal;
  };
  // 6 FLOPs a parameter and 12 of attention a layer, hidden unit and key: 48.2e9 + 12.9e9 for 8
  // thousand tokens, of which a mask leaves 89 %; for 16 thousand 82 %.
  EXPECT_FALSE(reads_causal("llama-3.1-8b", 8192));
  EXPECT_TRUE(reads_causal("llama-3.1-8b", 16384));
  EXPECT_FALSE(reads_causal("llama-3.1-70b", 16384));  // 420e9 + 129e9: 88 %
  EXPECT_TRUE(reads_causal("llama-3.1-70b", 32768));   // as every sequence so long
}

// Intervals can be asked for without the runs of a publisher, with prices made once as well.
TEST(Prediction, LeavesOutAPublisherWithPricesThatAreThere) {
  const Scenario scenario = scenario_from(
      R"({"stepcast": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100",
          "training": {"global_batch": 64}})");
  const auto pricing = make_pricing(scenario, source_folders());
  ASSERT_TRUE(pricing) << to_string(pricing.error());
  PredictOptions options;
  const auto with = predict(scenario, **pricing, options);
  options.without_errors_of = "NVIDIA";
  const auto without = predict(scenario, **pricing, options);
  ASSERT_TRUE(with && without);
  EXPECT_NE(with->step_time_high, without->step_time_high);
}

}  // namespace
}  // namespace stepcast
