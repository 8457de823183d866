// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/dropout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "kernels/numbers.h"

namespace stepcast::cpu {
namespace {

using Mask = std::vector<std::int8_t>;

TEST(Dropout, KeepsTheShareOfItsRateAndTheMean) {
  const DropoutShape shape{300, 400, 0.2, 1};
  const std::vector<double> ones(120000, 1);
  auto out = zeros<double>(120000);
  Mask mask(120000);
  dropout<double>(shape, ones.data(), nullptr, nullptr, out.data(), mask.data());
  // Five deviations of the mean of 120,000 throws: 5 sqrt(0.2 * 0.8 / 120000).
  const double kept = std::accumulate(mask.begin(), mask.end(), 0.0) / 120000;
  EXPECT_NEAR(kept, 0.8, 5.8e-3);
  EXPECT_NEAR(std::accumulate(out.begin(), out.end(), 0.0) / 120000, kept / 0.8, 1e-6);
}

TEST(Dropout, AnotherSeedDropsOthersAndARateOfNoneDropsNothing) {
  const std::vector<double> x = numbers(1000, 1);
  auto out = zeros<double>(1000);
  Mask first(1000), second(1000);
  dropout<double>({10, 100, 0.5, 1}, x.data(), nullptr, nullptr, out.data(), first.data());
  dropout<double>({10, 100, 0.5, 2}, x.data(), nullptr, nullptr, out.data(), second.data());
  EXPECT_NE(first, second);
  dropout<double>({10, 100, 0, 1}, x.data(), nullptr, nullptr, out.data(), first.data());
  EXPECT_EQ(first, Mask(1000, 1));
  EXPECT_EQ(out, x);
}

// With y = kept (x + b)/(1 - p) + r, the slope of y . g is what backward makes of g.
TEST(Dropout, GradientsEqualCentralDifferences) {
  const DropoutShape shape{3, 8, 0.3, 5};
  auto x = numbers(24, 1);
  const auto bias = numbers(8, 2), residual = numbers(24, 3), probe = numbers(24, 4);
  Mask mask(24);
  const auto loss = [&] {
    auto out = zeros<double>(24);
    dropout<double>(shape, x.data(), bias.data(), residual.data(), out.data(), mask.data());
    return dot(out, probe);
  };
  loss();
  auto gradient = zeros<double>(24);
  dropout_backward<double>(shape, probe.data(), mask.data(), gradient.data());
  expect_close(gradient, slopes(x, loss), kSlopeTolerance);
}

}  // namespace
}  // namespace stepcast::cpu
