// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/numbers.h"

namespace stepcast::cpu {
namespace {

constexpr NormKind kKinds[] = {NormKind::kLayer, NormKind::kRms};
constexpr std::int64_t kWidths[] = {1, 2, 8, 13, 32};
constexpr std::int64_t kNormRows = 5;

// Rows of x and of y lie further apart than they are wide.
struct NormCase {
  NormKind kind;
  std::int64_t width;
  std::int64_t x_stride = width + 3;
  std::int64_t y_stride = width + 2;
  std::vector<double> x = numbers(kNormRows * x_stride, 1);
  std::vector<double> weight = numbers(width, 2);
  std::vector<double> bias = numbers(width, 3);
  std::vector<double> probe = numbers(kNormRows * y_stride, 4);

  std::vector<double> forward() const {
    auto y = zeros<double>(kNormRows * y_stride);
    norm(kind, x.data(), weight.data(), bias.data(), y.data(), kNormRows, width, x_stride,
         y_stride);
    return y;
  }
  double loss() const { return dot(forward(), probe); }
};

std::vector<double> naive(const NormCase& c) {
  auto y = zeros<double>(kNormRows * c.y_stride);
  const auto width = static_cast<double>(c.width);
  for (std::int64_t row = 0; row < kNormRows; ++row) {
    const double* x = c.x.data() + row * c.x_stride;
    double mean = 0;
    double variance = 0;
    for (std::int64_t i = 0; i < c.width; ++i) mean += x[i] / width;
    if (c.kind == NormKind::kRms) mean = 0;
    for (std::int64_t i = 0; i < c.width; ++i) variance += (x[i] - mean) * (x[i] - mean) / width;
    for (std::int64_t i = 0; i < c.width; ++i) {
      const auto at = static_cast<std::size_t>(i);
      y[static_cast<std::size_t>(row * c.y_stride + i)] =
          (x[i] - mean) / std::sqrt(variance + 1e-5) * c.weight[at] + c.bias[at];
    }
  }
  return y;
}

struct Gradients {
  std::vector<double> x, weight, bias;
};

Gradients backward(const NormCase& c, bool accumulate, double before) {
  Gradients out{c.probe, std::vector<double>(c.weight.size(), before),
                std::vector<double>(c.weight.size(), before)};
  norm_backward(c.kind, c.x.data(), c.weight.data(), out.x.data(), out.x.data(), out.weight.data(),
                out.bias.data(), accumulate, kNormRows, c.width, c.x_stride, c.y_stride);
  return out;
}

// The rows alone, because what lies between them is neither read nor written.
std::vector<double> rows_of(const std::vector<double>& data, std::int64_t width,
                            std::int64_t stride) {
  std::vector<double> out;
  for (std::int64_t row = 0; row < kNormRows; ++row) {
    const auto start = data.begin() + row * stride;
    out.insert(out.end(), start, start + width);
  }
  return out;
}

TEST(Norm, EqualsItsFormula) {
  for (const NormKind kind : kKinds) {
    for (const std::int64_t width : kWidths) {
      const NormCase c{kind, width};
      expect_close(c.forward(), naive(c), kSameInDouble);
    }
  }
}

TEST(Norm, GradientsEqualCentralDifferences) {
  for (const NormKind kind : kKinds) {
    for (const std::int64_t width : kWidths) {
      if (kind == NormKind::kLayer && width == 1) continue;  // constant: the next test
      NormCase c{kind, width};
      const auto loss = [&] { return c.loss(); };
      const Gradients gradients = backward(c, false, 9.0);  // in place: dx is dy
      expect_close(rows_of(gradients.x, width, c.y_stride),
                   rows_of(slopes(c.x, loss), width, c.x_stride), kSlopeTolerance);
      expect_close(gradients.weight, slopes(c.weight, loss), kSlopeTolerance);
      expect_close(gradients.bias, slopes(c.bias, loss), kSlopeTolerance);
    }
  }
}

TEST(Norm, LayerNormOfWidthOneIsTheBias) {
  const NormCase c{NormKind::kLayer, 1};
  const Gradients gradients = backward(c, false, 0.0);
  for (const double y : rows_of(c.forward(), 1, c.y_stride)) EXPECT_EQ(y, c.bias.front());
  for (const double dx : rows_of(gradients.x, 1, c.y_stride)) EXPECT_EQ(dx, 0.0);
  EXPECT_EQ(gradients.weight.front(), 0.0);
}

TEST(Norm, WeightGradientsAreAddedToWhatIsThere) {
  const NormCase c{NormKind::kLayer, 13};
  const Gradients written = backward(c, false, 9.0);
  Gradients added = backward(c, true, 9.0);
  for (double& value : added.weight) value -= 9.0;
  for (double& value : added.bias) value -= 9.0;
  expect_close(added.weight, written.weight, kSameInDouble);
  expect_close(added.bias, written.bias, kSameInDouble);
  EXPECT_EQ(added.x, written.x);
}

TEST(Norm, NeedsNoBias) {
  NormCase c{NormKind::kRms, 13};
  c.bias.assign(c.bias.size(), 0.0);
  auto y = zeros<double>(kNormRows * c.y_stride);
  norm<double>(c.kind, c.x.data(), c.weight.data(), nullptr, y.data(), kNormRows, c.width,
               c.x_stride, c.y_stride);
  EXPECT_EQ(y, c.forward());
  const Gradients with_bias = backward(c, false, 0.0);
  Gradients without = {c.probe, c.weight, {}};
  norm_backward<double>(c.kind, c.x.data(), c.weight.data(), c.probe.data(), without.x.data(),
                        without.weight.data(), nullptr, false, kNormRows, c.width, c.x_stride,
                        c.y_stride);
  EXPECT_EQ(without.x, with_bias.x);
  EXPECT_EQ(without.weight, with_bias.weight);
}

TEST(Norm, FloatFollowsDouble) {
  for (const NormKind kind : kKinds) {
    const NormCase c{kind, 32};
    const auto x = converted<float>(c.x);
    const auto weight = converted<float>(c.weight);
    auto y = zeros<float>(kNormRows * c.y_stride);
    norm(kind, x.data(), weight.data(), converted<float>(c.bias).data(), y.data(), kNormRows,
         c.width, c.x_stride, c.y_stride);
    expect_close(y, c.forward(), kSameInFloat);
    auto dx = converted<float>(c.probe);
    auto weight_gradient = zeros<float>(c.width);
    norm_backward<float>(kind, x.data(), weight.data(), dx.data(), dx.data(),
                         weight_gradient.data(), nullptr, false, kNormRows, c.width, c.x_stride,
                         c.y_stride);
    const Gradients expected = backward(c, false, 0.0);
    expect_close(dx, expected.x, kSameInFloat);
    expect_close(weight_gradient, expected.weight, kSameInFloat);
  }
}

TEST(Norm, FarFromZeroKeepsTheVarianceOfFloats) {
  // 4096 + {0, 1, 2, 3}: mean 4097.5, variance 1.25. Mean of squares less square of the mean would
  // have 2^24 / 2^24 = 1 as its rounding error.
  const std::vector<float> x = {4096, 4097, 4098, 4099};
  const std::vector<float> ones(4, 1);
  auto y = zeros<float>(4);
  norm<float>(NormKind::kLayer, x.data(), ones.data(), nullptr, y.data(), 1, 4, 4, 4);
  const double sigma = std::sqrt(1.25 + 1e-5);
  expect_close(y, std::vector<double>{-1.5 / sigma, -0.5 / sigma, 0.5 / sigma, 1.5 / sigma}, 1e-6);
}

}  // namespace
}  // namespace stepcast::cpu
