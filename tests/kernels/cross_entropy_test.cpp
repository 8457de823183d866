// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "kernels/numbers.h"

namespace stepcast::cpu {
namespace {

constexpr std::int64_t kTokenRows = 3;

template <typename T>
struct Parts {
  std::vector<T> largest = zeros<T>(kTokenRows);
  std::vector<T> sum = zeros<T>(kTokenRows);
  std::vector<T> target = zeros<T>(kTokenRows);
};

template <typename T>
Parts<T> parts_of(const LogitSlice& slice, const std::vector<T>& logits,
                  const std::vector<std::int64_t>& targets) {
  Parts<T> out;
  cross_entropy(slice, logits.data(), targets.data(), kTokenRows, out.largest.data(),
                out.sum.data(), out.target.data());
  return out;
}

// The loss over the whole vocabulary: -log(exp(target)/sum of exp).
template <typename T>
T loss_of(const Parts<T>& parts, std::size_t row) {
  return std::log(parts.sum[row]) + parts.largest[row] - parts.target[row];
}

TEST(CrossEntropy, EqualsItsFormula) {
  for (const std::int64_t columns : {1, 9, 5003}) {  // the last is wider than a block
    const std::vector<std::int64_t> targets = {0, columns / 2, columns - 1};
    const auto logits = numbers(kTokenRows * columns, 1);
    const auto parts = parts_of({0, columns, columns}, logits, targets);
    const auto narrow = parts_of({0, columns, columns}, converted<float>(logits), targets);
    for (std::size_t row = 0; row < 3; ++row) {
      const auto start = row * static_cast<std::size_t>(columns);
      double sum = 0;
      for (std::int64_t c = 0; c < columns; ++c) {
        sum += std::exp(logits[start + static_cast<std::size_t>(c)]);
      }
      const double expected =
          std::log(sum) - logits[start + static_cast<std::size_t>(targets[row])];
      EXPECT_NEAR(loss_of(parts, row), expected, 1e-12);
      EXPECT_NEAR(loss_of(narrow, row), expected, 1e-5);
    }
  }
}

TEST(CrossEntropy, LargestInALaterBlockRescalesTheSum) {
  // exp(0 - 3) for all but the last of 5000, and 1.
  auto logits = zeros<double>(kTokenRows * 5000);
  for (std::size_t row = 1; row <= 3; ++row) logits[row * 5000 - 1] = 3;
  const auto parts = parts_of({0, 5000, 5000}, logits, {0, 0, 0});
  for (std::size_t row = 0; row < 3; ++row) {
    EXPECT_EQ(parts.largest[row], 3);
    EXPECT_NEAR(parts.sum[row], 1 + 4999 * std::exp(-3.0), 1e-10);
  }
}

TEST(CrossEntropy, LogitsBeyondTheRangeOfExpAreNoTrouble) {
  const std::vector<float> logits = {1000, 1001, -2000, -2000, 1e30F, -1e30F};
  const auto parts = parts_of({0, 2, 2}, logits, {1, 0, 0});
  EXPECT_NEAR(loss_of(parts, 0), std::log(1 + std::exp(-1.0)), 1e-4);  // of numbers near 1000
  EXPECT_NEAR(loss_of(parts, 1), std::log(2.0), 1e-3);                 // of numbers near 2000
  EXPECT_EQ(loss_of(parts, 2), 0.0F);
}

// Two slices of 7 columns that hold 12 tokens: the second has two columns of padding.
TEST(CrossEntropy, TwoSlicesCombineToTheWholeAndPaddingTakesNoPart) {
  const std::vector<std::int64_t> targets = {0, 6, 11};
  const auto whole = numbers(kTokenRows * 12, 2);
  std::vector<double> first, second;
  for (std::size_t row = 0; row < 3; ++row) {
    const auto start = whole.begin() + static_cast<std::ptrdiff_t>(row) * 12;
    first.insert(first.end(), start, start + 7);
    second.insert(second.end(), start + 7, start + 12);
    second.insert(second.end(), 2, 1e9);
  }
  const LogitSlice slices[] = {{0, 7, 7}, {7, 7, 5}};
  const auto expected = parts_of({0, 12, 12}, whole, targets);
  const auto a = parts_of(slices[0], first, targets);
  const auto b = parts_of(slices[1], second, targets);
  Parts<double> both;
  for (std::size_t row = 0; row < 3; ++row) {
    both.largest[row] = std::max(a.largest[row], b.largest[row]);
    both.sum[row] = a.sum[row] * std::exp(a.largest[row] - both.largest[row]) +
                    b.sum[row] * std::exp(b.largest[row] - both.largest[row]);
    both.target[row] = a.target[row] + b.target[row];
    EXPECT_NEAR(loss_of(both, row), loss_of(expected, row), 1e-13);
  }

  auto whole_gradient = whole;
  cross_entropy_backward({0, 12, 12}, whole_gradient.data(), targets.data(), kTokenRows,
                         expected.largest.data(), expected.sum.data(), 0.5);
  for (auto [slice, gradient] : {std::pair{0, &first}, std::pair{1, &second}}) {
    cross_entropy_backward(slices[slice], gradient->data(), targets.data(), kTokenRows,
                           both.largest.data(), both.sum.data(), 0.5);
  }
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t c = 0; c < 14; ++c) {
      const double actual = c < 7 ? first[row * 7 + c] : second[row * 7 + c - 7];
      EXPECT_NEAR(actual, c < 12 ? whole_gradient[row * 12 + c] : 0.0, 1e-14);
    }
  }
}

TEST(CrossEntropy, GradientEqualsCentralDifferences) {
  const std::vector<std::int64_t> targets = {4, 0, 8};
  const LogitSlice slice{0, 11, 9};
  auto logits = numbers(kTokenRows * 11, 3);
  const auto loss = [&] {
    const auto parts = parts_of(slice, logits, targets);
    return 0.25 * (loss_of(parts, 0) + loss_of(parts, 1) + loss_of(parts, 2));
  };
  const auto parts = parts_of(slice, logits, targets);
  auto gradient = logits;
  cross_entropy_backward(slice, gradient.data(), targets.data(), kTokenRows, parts.largest.data(),
                         parts.sum.data(), 0.25);
  expect_close(gradient, slopes(logits, loss), kSlopeTolerance);

  auto narrow = converted<float>(logits);
  const auto narrow_parts = parts_of(slice, narrow, targets);
  cross_entropy_backward(slice, narrow.data(), targets.data(), kTokenRows,
                         narrow_parts.largest.data(), narrow_parts.sum.data(), 0.25F);
  expect_close(narrow, gradient, kSameInFloat);
}

TEST(CrossEntropy, SliceOfPaddingAloneHasNothingToSay) {
  auto logits = numbers<float>(kTokenRows * 4, 4);
  const std::vector<std::int64_t> targets = {8, 9, 1};
  const auto parts = parts_of({8, 4, 0}, logits, targets);
  for (std::size_t row = 0; row < 3; ++row) {
    EXPECT_EQ(parts.largest[row], -std::numeric_limits<float>::infinity());
    EXPECT_EQ(parts.sum[row], 0.0F);
    EXPECT_EQ(parts.target[row], 0.0F);
  }
  const std::vector<float> ones(3, 1);
  cross_entropy_backward({8, 4, 0}, logits.data(), targets.data(), kTokenRows, ones.data(),
                         ones.data(), 1.0F);
  EXPECT_EQ(logits, zeros<float>(kTokenRows * 4));
}

}  // namespace
}  // namespace stepcast::cpu
