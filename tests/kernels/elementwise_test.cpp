// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/numbers.h"

namespace stepcast::cpu {
namespace {

constexpr std::int64_t kCounts[] = {0, 1, 7, 8, 45};

TEST(Elementwise, AddsAccumulatesAndScales) {
  for (const std::int64_t count : kCounts) {
    const auto a = numbers<float>(count, 1);
    const auto b = numbers<float>(count, 2);
    std::vector<float> sum, three;
    for (std::size_t i = 0; i < a.size(); ++i) {
      sum.push_back(a[i] + b[i]);
      three.push_back(3 * a[i]);
    }
    auto out = zeros<float>(count);
    add(a.data(), b.data(), out.data(), count);
    EXPECT_EQ(out, sum);
    out = a;
    accumulate(b.data(), out.data(), count);
    EXPECT_EQ(out, sum);
    out = a;
    scale(out.data(), 3.0F, count);
    EXPECT_EQ(out, three);
  }
}

TEST(AddResidual, AddsTheBiasOfTheColumnAndMayWriteOverTheBranch) {
  for (const std::int64_t columns : {1, 8, 11}) {
    const auto branch = numbers(3 * columns, 1);
    const auto residual = numbers(3 * columns, 2);
    const auto bias = numbers(columns, 3);
    std::vector<double> without, with;
    for (std::size_t i = 0; i < branch.size(); ++i) {
      without.push_back(branch[i] + residual[i]);
      with.push_back(branch[i] + bias[i % bias.size()] + residual[i]);
    }
    auto out = branch;
    add_residual<double>(out.data(), nullptr, residual.data(), out.data(), 3, columns);
    EXPECT_EQ(out, without);
    out = branch;
    add_residual(out.data(), bias.data(), residual.data(), out.data(), 3, columns);
    EXPECT_EQ(out, with);
  }
}

TEST(StepBySign, GoesAgainstTheSignWhateverTheSize) {
  const std::vector<double> gradient{3, -1e-9, 0, -7};
  std::vector<double> weight{1, 1, 1, 1};
  step_by_sign(gradient.data(), weight.data(), 0.25, 4);
  EXPECT_EQ(weight, (std::vector<double>{0.75, 1.25, 1, 1.25}));
}

TEST(SumOfSquares, IsTakenInDouble) {
  // 16,384 times 2^-24 beside 1: in floats each would be lost, in doubles their sum is 2^-10.
  auto data = std::vector<float>(16'385, 0x1p-12F);
  data.front() = 1;
  EXPECT_EQ(sum_of_squares(data.data(), 16'385), 1 + 0x1p-10);
  EXPECT_EQ(sum_of_squares<double>(nullptr, 0), 0.0);
  const std::vector<double> few = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  EXPECT_EQ(sum_of_squares(few.data(), 11), 506.0);  // 11 * 12 * 23 / 6
}

TEST(SumOfSquares, HasTheSameBitsAtEveryAlignment) {
  const auto data = numbers<float>(9001, 1);
  const double expected = sum_of_squares(data.data(), 9001);
  for (std::size_t shift = 1; shift < 9; ++shift) {
    std::vector<float> moved(shift, 0.0F);
    moved.insert(moved.end(), data.begin(), data.end());
    EXPECT_EQ(sum_of_squares(moved.data() + shift, 9001), expected);
  }
}

struct Moments {
  std::vector<double> weight, first, second;
};

// The algorithm as it is printed in Loshchilov and Hutter 2019, with decay by the learning rate.
void naive(const AdamW& by, std::int64_t step, const std::vector<double>& gradient,
           Moments& state) {
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const double g = gradient[i];
    state.first[i] = by.beta1 * state.first[i] + (1 - by.beta1) * g;
    state.second[i] = by.beta2 * state.second[i] + (1 - by.beta2) * g * g;
    const double m = state.first[i] / (1 - std::pow(by.beta1, step));
    const double v = state.second[i] / (1 - std::pow(by.beta2, step));
    state.weight[i] -=
        by.learning_rate * (m / (std::sqrt(v) + by.epsilon) + by.weight_decay * state.weight[i]);
  }
}

TEST(AdamW, FollowsTheFormulaForSeveralStepsInDoubleAndFloat) {
  const AdamW by{
      .learning_rate = 0.05, .beta1 = 0.8, .beta2 = 0.9, .epsilon = 1e-3, .weight_decay = 0.2};
  for (const std::int64_t count : kCounts) {
    Moments expected{numbers(count, 1), zeros<double>(count), zeros<double>(count)};
    Moments actual = expected;
    auto weight = converted<float>(expected.weight);
    auto first = zeros<float>(count);
    auto second = zeros<float>(count);
    for (std::int64_t step = 1; step <= 4; ++step) {
      const auto gradient = numbers(count, static_cast<unsigned>(10 + step));
      naive(by, step, gradient, expected);
      adamw(by, step, gradient.data(), actual.weight.data(), actual.first.data(),
            actual.second.data(), count);
      adamw(by, step, converted<float>(gradient).data(), weight.data(), first.data(), second.data(),
            count);
    }
    expect_close(actual.weight, expected.weight, kSameInDouble);
    expect_close(actual.first, expected.first, kSameInDouble);
    expect_close(actual.second, expected.second, kSameInDouble);
    expect_close(weight, expected.weight, kSameInFloat);
  }
}

TEST(AdamW, FirstStepIsTheLearningRateInTheDirectionOfTheSign) {
  // m/(1 - beta1) = g and v/(1 - beta2) = g^2, so without decay the step is sign(g).
  const AdamW by{.learning_rate = 0.5, .epsilon = 0, .weight_decay = 0};
  const std::vector<double> gradient = {3, -0.001};
  std::vector<double> weight = {1, 1};
  std::vector<double> first = {0, 0};
  auto second = first;
  adamw(by, 1, gradient.data(), weight.data(), first.data(), second.data(), 2);
  EXPECT_NEAR(weight[0], 0.5, 1e-14);
  EXPECT_NEAR(weight[1], 1.5, 1e-14);
}

}  // namespace
}  // namespace stepcast::cpu
