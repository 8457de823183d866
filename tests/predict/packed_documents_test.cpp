// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "predict/prediction.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

testing::GptCase long_rows(const std::string& documents) {
  testing::GptCase c;
  c.hidden = 2048;
  c.heads = 16;
  c.sequence = 16384;
  c.attention = "flash";
  c.cluster = R"("base": "dgx-h100")";
  c.dropout = 0;
  c.extra_training = documents;
  return c;
}

Prediction forecast(const testing::GptCase& c) {
  const auto out = predict(testing::gpt(c), testing::source_folders());
  EXPECT_TRUE(out);
  return *out;
}

const char* const kDocuments = R"(, "document_length": 512, "document_deviation": 512)";

// E[L^2] / E[L] is 1024 tokens here, a sixteenth of the row, and the ends of rows take a little.
TEST(PackedDocuments, CutTheWorkOfAttention) {
  const testing::GptCase whole = long_rows(""), cut = long_rows(kDocuments);
  const double part =
      model_attention_flops(testing::gpt(cut)) / model_attention_flops(testing::gpt(whole));
  EXPECT_NEAR(part, 1.0 / 16, 0.1 / 16);
  EXPECT_LT(forecast(cut).step_time, forecast(whole).step_time);
}

// A second forward counts as the first does.
TEST(PackedDocuments, AreRecomputedAsTheyWereComputed) {
  testing::GptCase c = long_rows(kDocuments);
  c.recompute = "full";
  const Prediction again = forecast(c), once = forecast(long_rows(kDocuments));
  const double forward =
      (again.hfu * again.step_time.value()) / (once.mfu * once.step_time.value());
  EXPECT_NEAR(forward, 4.0 / 3, 0.03);
}

Seconds beside_the_ideal(int dp, int rows) {
  testing::GptCase c = long_rows(kDocuments);
  c.dp = dp;
  c.global_batch = dp * rows;
  return forecast(c).waterfall.attention_inefficiency;
}

// The busier of two ranks has (1 + e v / sqrt(n)) of the mean over n rows. So with four times as
// many rows attention waits four halves as long.
TEST(PackedDocuments, LetRanksWaitForTheLongest) {
  const double few = (beside_the_ideal(2, 4) - beside_the_ideal(1, 4)).value();
  const double many = (beside_the_ideal(2, 16) - beside_the_ideal(1, 16)).value();
  ASSERT_GT(few, 0);
  EXPECT_NEAR(many / few, 2, 1e-6);
}

TEST(PackedDocuments, AreNamedAsUnproven) {
  const std::vector<std::string> unproven = forecast(long_rows(kDocuments)).unproven;
  EXPECT_NE(std::find(unproven.begin(), unproven.end(), "documents packed into sequences"),
            unproven.end());
}

}  // namespace
}  // namespace stepcast
