// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/embedding.h"

#include <gtest/gtest.h>

#include "kernels/numbers.h"

namespace stepcast::cpu {
namespace {

constexpr std::int64_t kVocabulary = 10;
constexpr std::int64_t kWidth = 5;
const std::vector<std::int64_t> kTokens = {0, 9, 3, 4, 3, 5, 3};
constexpr std::int64_t kCount = 7;

std::vector<double> looked_up(const std::vector<double>& table, const TableSlice& slice) {
  auto out = numbers(kCount * kWidth, 9);  // written over
  embed_tokens(slice, kTokens.data(), kCount, table.data(), out.data());
  return out;
}

TEST(Embedding, TakesTheRowOfTheToken) {
  const auto table = numbers(kVocabulary * kWidth, 1);
  const auto out = looked_up(table, {0, kVocabulary, kWidth});
  for (std::int64_t i = 0; i < kCount; ++i) {
    for (std::int64_t c = 0; c < kWidth; ++c) {
      EXPECT_EQ(out[static_cast<std::size_t>(i * kWidth + c)],
                table[static_cast<std::size_t>(kTokens[static_cast<std::size_t>(i)] * kWidth + c)]);
    }
  }
}

TEST(Embedding, SlicesOfTheVocabularySumToTheWhole) {
  const auto table = numbers(kVocabulary * kWidth, 1);
  const std::vector<double> low(table.begin(), table.begin() + 4 * kWidth);
  const std::vector<double> high(table.begin() + 4 * kWidth, table.end());
  auto sum = looked_up(low, {0, 4, kWidth});
  const auto rest = looked_up(high, {4, 6, kWidth});
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += rest[i];
  EXPECT_EQ(sum, looked_up(table, {0, kVocabulary, kWidth}));
}

TEST(Embedding, GradientEqualsCentralDifferencesAndIsAdded) {
  auto table = numbers(6 * kWidth, 1);
  const TableSlice slice{3, 6, kWidth};  // tokens 0 and 9 are another slice's
  const auto probe = numbers(kCount * kWidth, 2);
  auto gradient = std::vector<double>(table.size(), 0.0);
  embed_tokens_backward(slice, kTokens.data(), kCount, probe.data(), gradient.data());
  const auto loss = [&] { return dot(looked_up(table, slice), probe); };
  expect_close(gradient, slopes(table, loss), kSlopeTolerance);

  auto twice = gradient;
  embed_tokens_backward(slice, kTokens.data(), kCount, probe.data(), twice.data());
  for (double& value : gradient) value *= 2;
  expect_close(twice, gradient, kSameInDouble);
}

TEST(Positions, StartAnywhereInASequenceAndBeginAnew) {
  // Rows 2..6 of sequences of three: positions 2 | 0 1 2 | 0.
  const std::vector<float> table = {10, 20, 30};
  std::vector<float> x = {1, 2, 3, 4, 5};
  add_positions(x.data(), table.data(), 5, 2, 3, 1);
  EXPECT_EQ(x, (std::vector<float>{31, 12, 23, 34, 15}));
}

TEST(Positions, GradientEqualsCentralDifferences) {
  auto table = numbers(3 * kWidth, 1);
  const auto before = numbers(kCount * kWidth, 2);
  const auto probe = numbers(kCount * kWidth, 3);
  const auto loss = [&] {
    auto x = before;
    add_positions(x.data(), table.data(), kCount, 1, 3, kWidth);
    return dot(x, probe);
  };
  auto gradient = std::vector<double>(table.size(), 0.0);
  add_positions_backward(probe.data(), gradient.data(), kCount, 1, 3, kWidth);
  expect_close(gradient, slopes(table, loss), kSlopeTolerance);
}

}  // namespace
}  // namespace stepcast::cpu
