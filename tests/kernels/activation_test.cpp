// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/activation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "kernels/numbers.h"

namespace stepcast::cpu {
namespace {

constexpr ActivationKind kKinds[] = {ActivationKind::kGelu, ActivationKind::kSwiglu};
constexpr std::int64_t kWidths[] = {1, 7, 8, 29};
constexpr std::int64_t kRows = 3;

std::int64_t up_width(ActivationKind kind, std::int64_t width) {
  return kind == ActivationKind::kSwiglu ? 2 * width : width;
}

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

double silu(double x) { return x / (1 + std::exp(-x)); }

std::vector<double> naive(ActivationKind kind, const std::vector<double>& up,
                          const std::vector<double>& bias, std::int64_t width) {
  std::vector<double> out;
  const auto in_width = static_cast<std::size_t>(up_width(kind, width));
  for (std::size_t row = 0; row < static_cast<std::size_t>(kRows); ++row) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(width); ++i) {
      const auto at = [&](std::size_t column) {
        return up[row * in_width + column] + (bias.empty() ? 0.0 : bias[column]);
      };
      out.push_back(kind == ActivationKind::kGelu
                        ? gelu(at(i))
                        : silu(at(i)) * at(i + static_cast<std::size_t>(width)));
    }
  }
  return out;
}

TEST(Activation, EqualsItsFormulaInDoubleAndFloat) {
  for (const ActivationKind kind : kKinds) {
    for (const std::int64_t width : kWidths) {
      const auto up = numbers(kRows * up_width(kind, width), 1);
      const auto bias = numbers(up_width(kind, width), 2);
      auto out = zeros<double>(kRows * width);
      activation(kind, up.data(), bias.data(), out.data(), kRows, width);
      expect_close(out, naive(kind, up, bias, width), kSameInDouble);
      activation<double>(kind, up.data(), nullptr, out.data(), kRows, width);
      expect_close(out, naive(kind, up, {}, width), kSameInDouble);

      auto narrow = zeros<float>(kRows * width);
      activation(kind, converted<float>(up).data(), converted<float>(bias).data(), narrow.data(),
                 kRows, width);
      expect_close(narrow, naive(kind, up, bias, width), kSameInFloat);
    }
  }
}

TEST(Activation, GradientEqualsCentralDifferences) {
  for (const ActivationKind kind : kKinds) {
    for (const std::int64_t width : kWidths) {
      auto up = numbers(kRows * up_width(kind, width), 3);
      const auto bias = numbers(up_width(kind, width), 4);
      const auto probe = numbers(kRows * width, 5);
      auto out = zeros<double>(kRows * width);
      const auto loss = [&] {
        activation(kind, up.data(), bias.data(), out.data(), kRows, width);
        return dot(out, probe);
      };
      auto gradient = up;
      activation_backward(kind, up.data(), bias.data(), probe.data(), gradient.data(), kRows,
                          width);
      expect_close(gradient, slopes(up, loss), kSlopeTolerance);

      auto narrow = converted<float>(up);
      activation_backward(kind, narrow.data(), converted<float>(bias).data(),
                          converted<float>(probe).data(), narrow.data(), kRows, width);
      expect_close(narrow, gradient, kSameInFloat);  // in place
    }
  }
}

TEST(Activation, ReadsHalvesThatLieApartAsThoseOfRows) {
  for (const std::int64_t width : kWidths) {
    const auto up = numbers(kRows * 2 * width, 6), bias = numbers(2 * width, 7);
    const auto probe = numbers(kRows * width, 8);
    std::vector<double> gates, linear;
    for (auto row = up.begin(); row != up.end(); row += 2 * width) {
      gates.insert(gates.end(), row, row + width);
      linear.insert(linear.end(), row + width, row + 2 * width);
    }
    constexpr auto kKind = ActivationKind::kSwiglu;
    auto whole = zeros<double>(kRows * width), apart = whole;
    activation(kKind, up.data(), bias.data(), whole.data(), kRows, width);
    activation(kKind, gates.data(), bias.data(), apart.data(), kRows, width, linear.data());
    EXPECT_EQ(apart, whole);
    auto of_whole = up, of_apart = up;
    activation_backward(kKind, up.data(), bias.data(), probe.data(), of_whole.data(), kRows, width);
    activation_backward(kKind, gates.data(), bias.data(), probe.data(), of_apart.data(), kRows,
                        width, linear.data());
    EXPECT_EQ(of_apart, of_whole);
  }
}

TEST(Activation, FarFromZeroIsIdentityOrNothing) {
  const std::vector<float> up = {-1e4F, -60, 60, 1e4F};
  auto out = zeros<float>(4);
  activation<float>(ActivationKind::kGelu, up.data(), nullptr, out.data(), 1, 4);
  EXPECT_EQ(out, (std::vector<float>{0, 0, 60, 1e4F}));
  const std::vector<float> ones(4, 1);
  activation_backward<float>(ActivationKind::kGelu, up.data(), nullptr, ones.data(), out.data(), 1,
                             4);
  EXPECT_EQ(out, (std::vector<float>{0, 0, 1, 1}));
}

}  // namespace
}  // namespace stepcast::cpu
