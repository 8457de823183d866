// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/rotary.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/numbers.h"

namespace stepcast::cpu {
namespace {

// More positions than one block of angles.
struct RotaryCase {
  std::int64_t batch = 2, sequence = 131, heads = 3, head_dim = 10;
  std::int64_t stride = heads * head_dim + 4;
  std::int64_t count = batch * sequence * stride;
};

std::vector<double> naive(const RotaryCase& c, const std::vector<double>& x) {
  auto out = x;
  for (std::int64_t row = 0; row < c.batch * c.sequence; ++row) {
    for (std::int64_t h = 0; h < c.heads; ++h) {
      for (std::int64_t i = 0; i < c.head_dim / 2; ++i) {
        const auto first = static_cast<std::size_t>(row * c.stride + h * c.head_dim + i);
        const auto second = first + static_cast<std::size_t>(c.head_dim / 2);
        const double angle =
            static_cast<double>(row % c.sequence) *
            std::pow(10'000.0, -2.0 * static_cast<double>(i) / static_cast<double>(c.head_dim));
        out[first] = x[first] * std::cos(angle) - x[second] * std::sin(angle);
        out[second] = x[second] * std::cos(angle) + x[first] * std::sin(angle);
      }
    }
  }
  return out;
}

template <typename T>
void turn(const RotaryCase& c, const std::vector<T>& in, std::vector<T>& out, bool backward) {
  rotary<T>(c.batch, c.sequence, c.heads, c.head_dim, {in.data(), c.stride}, {out.data(), c.stride},
            backward);
}

TEST(Rotary, EqualsItsFormulaInDoubleAndFloat) {
  const RotaryCase c;
  const auto x = numbers(c.count, 1);
  auto out = x;
  turn(c, x, out, false);
  expect_close(out, naive(c, x), kSameInDouble);
  auto narrow = converted<float>(x);
  turn(c, narrow, narrow, false);  // in place
  expect_close(narrow, out, kSameInFloat);
}

TEST(Rotary, BackwardTurnsBackAndIsTheTranspose) {
  const RotaryCase c;
  const auto x = numbers(c.count, 1);
  auto turned = x;
  turn(c, x, turned, false);
  auto back = turned;
  turn(c, turned, back, true);
  expect_close(back, x, kSameInDouble);

  // <probe, R x> = <R^T probe, x>
  const auto probe = numbers(c.count, 2);
  auto gradient = probe;
  turn(c, probe, gradient, true);
  EXPECT_NEAR(dot(probe, turned) / dot(gradient, x), 1, 1e-10);
}

TEST(Rotary, GradientEqualsCentralDifferences) {
  const RotaryCase c{
      .batch = 1, .sequence = 4, .heads = 2, .head_dim = 6, .stride = 12, .count = 48};
  auto x = numbers(c.count, 1);
  const auto probe = numbers(c.count, 2);
  auto out = x;
  const auto loss = [&] {
    turn(c, x, out, false);
    return dot(out, probe);
  };
  auto gradient = probe;
  turn(c, probe, gradient, true);
  expect_close(gradient, slopes(x, loss), kSlopeTolerance);
}

TEST(Rotary, FirstPositionStaysAsItIs) {
  const RotaryCase c{.batch = 1, .sequence = 1, .heads = 1, .head_dim = 2, .stride = 2, .count = 2};
  std::vector<float> x = {3, 4};
  turn(c, x, x, false);
  EXPECT_EQ(x, (std::vector<float>{3, 4}));
}

}  // namespace
}  // namespace stepcast::cpu
