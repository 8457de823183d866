// SPDX-License-Identifier: Apache-2.0
#include "layout/packed_documents.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "core/each.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

Scenario packed(const std::string& training, int dp = 1, int zero = 2, int global_batch = 8) {
  testing::GptCase c;
  c.framework = "fsdp";
  c.cluster = R"("base": "dgx-h100")";
  c.attention = "flash";
  c.sequence = 4096;
  c.dp = dp;
  c.zero = zero;
  c.global_batch = global_batch;
  c.extra_training = training;
  return testing::gpt(c);
}

// Rows of eight documents of L tokens cut two of them: 512 - 512^2 / (3 * 4096).
TEST(Documents, OfOneLengthSpanItButForTheEndsOfRows) {
  const PackedRows rows = pack_documents(512, 0, 4096);
  EXPECT_NEAR(rows.span, 512 - 512.0 * 512 / (3 * 4096), 1e-9);
  EXPECT_NEAR(rows.deviation, 0, 1e-9);
}

TEST(Documents, FarLongerThanRowsFillThem) {
  EXPECT_NEAR(pack_documents(4e8, 0, 4096).span, 4096, 0.1);
}

// Rows without end: E[L^2] / E[L] = mean (1 + cv^2).
TEST(Documents, OfShortLogNormalLengthsSpanTheirMeanAndVariance) {
  for (const double cv : each_of(std::vector{0.25, 0.5, 1.0})) {
    EXPECT_NEAR(pack_documents(100, 100 * cv, 1e7).span, 100 * (1 + cv * cv), 0.01);
  }
}

struct DrawnRows {
  double span, deviation;
};

// Draws documents one after the other and cuts rows from them.
DrawnRows draw_rows(double mean, double deviation, double row) {
  std::mt19937_64 random(17);
  const double variance = std::log1p(deviation * deviation / (mean * mean));
  std::lognormal_distribution<double> length(std::log(mean) - variance / 2, std::sqrt(variance));
  constexpr int kRows = 6000;
  double sum = 0, squares = 0, document = 0;
  for (int i = 0; i < kRows; ++i) {
    double pairs = 0;
    for (double left = row; left > 0;) {
      if (document <= 0) document = length(random);
      const double piece = std::min(document, left);
      pairs += piece * piece;
      left -= piece;
      document -= piece;
    }
    sum += pairs;
    squares += pairs * pairs;
  }
  const double average = sum / kRows;
  return {average / row, std::sqrt(squares / kRows - average * average) / average};
}

TEST(Documents, DrawnOneByOneGiveTheSpan) {
  for (const double row : each_of(std::vector{2048.0, 4096.0, 32768.0})) {
    for (const double deviation : each_of(std::vector{100.0, 600.0, 900.0})) {
      const double drawn = draw_rows(600, deviation, row).span;
      EXPECT_NEAR(pack_documents(600, deviation, row).span / drawn, 1, 0.04) << row << deviation;
    }
  }
}

TEST(Documents, DrawnOneByOneGiveTheDeviationOfLongRows) {
  const double drawn = draw_rows(600, 700, 65536).deviation;
  EXPECT_NEAR(pack_documents(600, 700, 65536).deviation / drawn, 1, 0.12);
}

TEST(Documents, DeviateAsMuchAsTheyAreLongWhereNothingIsSaid) {
  EXPECT_EQ(packed(R"(, "document_length": 500)").training.document_deviation, 500);
}

// The busiest of d ranks with n rows each: 1 + e(d) deviation / sqrt(n).
TEST(Documents, MakeOneRankTheBusiestLessWithMoreRows) {
  const std::string lengths = R"(, "document_length": 500, "document_deviation": 600)";
  const double deviation = pack_documents(500, 600, 4096).deviation;
  EXPECT_DOUBLE_EQ(busiest_attention(packed(lengths)), 1);
  EXPECT_NEAR(busiest_attention(packed(lengths, 2, 2, 8)), 1 + 0.5642 * deviation / 2, 1e-12);
  EXPECT_NEAR(busiest_attention(packed(lengths, 2, 2, 128)), 1 + 0.5642 * deviation / 8, 1e-12);
  // Ranks that gather parameters meet in every micro-batch.
  EXPECT_NEAR(busiest_attention(packed(lengths, 2, 3, 128)), 1 + 0.5642 * deviation, 1e-12);
  EXPECT_DOUBLE_EQ(busiest_attention(packed("", 8, 3)), 1);
}

// A row of one document has all pairs that there are.
TEST(Documents, NeverMakeARankBusierThanWholeRows) {
  const Scenario scenario =
      packed(R"(, "document_length": 4000, "document_deviation": 100000)", 8, 3);
  EXPECT_LE(busiest_attention(scenario) * document_span(scenario), 4096 * (1 + 1e-12));
}

}  // namespace
}  // namespace stepcast
