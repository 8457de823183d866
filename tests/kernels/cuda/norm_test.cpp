// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/norm.h"

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/norm.h"
#include "kernels/cuda/device_case.h"

namespace stepcast::cuda {
namespace {

template <typename T>
class Norm : public OnDeviceIn<T> {};
TYPED_TEST_SUITE(Norm, NumberTypes, TypeNames);

template <typename T>
struct Case {
  NormKind kind;
  std::int64_t rows, width, spare;
  bool with_bias;
  std::int64_t x_stride = width + spare, y_stride = width + 2 * spare;
  std::vector<T> x = numbers_as<T>(rows * x_stride, 1), weight = numbers_as<T>(width, 2);
  std::vector<T> bias = numbers_as<T>(width, 3), probe = numbers_as<T>(rows * y_stride, 4);
};

template <typename T>
void expect_forward(const Case<T>& c) {
  const DeviceArray<T> x(c.x), weight(c.weight), bias(c.bias), y(c.probe);
  norm(c.kind, x.data(), weight.data(), c.with_bias ? bias.data() : nullptr, y.data(), c.rows,
       c.width, c.x_stride, c.y_stride, nullptr);
  auto expected = widened(c.probe);  // what lies between the rows stays as it is
  cpu::norm<double>(c.kind, widened(c.x).data(), widened(c.weight).data(),
                    c.with_bias ? widened(c.bias).data() : nullptr, expected.data(), c.rows,
                    c.width, c.x_stride, c.y_stride);
  expect_close(widened(y.on_host()), expected, kSame<T>);
}

template <typename T>
void expect_joined(const Case<T>& c) {
  const std::int64_t count = c.rows * c.width;
  const auto branch = numbers_as<T>(count, 5), residual = numbers_as<T>(count, 6);
  const DeviceArray<T> from(branch), stream(residual), weight(c.weight), bias(c.bias), sum(count),
      y(count);
  const T* maybe = c.with_bias ? bias.data() : nullptr;
  add_norm(c.kind, from.data(), maybe, stream.data(), weight.data(), maybe, sum.data(), y.data(),
           c.rows, c.width, nullptr);
  const auto wide_bias = widened(c.bias);
  const double* cpu_bias = c.with_bias ? wide_bias.data() : nullptr;
  auto expected = zeros<double>(count);
  cpu::add_residual(widened(branch).data(), cpu_bias, widened(residual).data(), expected.data(),
                    c.rows, c.width);
  expect_close(widened(sum.on_host()), expected, kSame<T>);
  const auto stored = widened(sum.on_host());  // which the norm is of
  cpu::norm<double>(c.kind, stored.data(), widened(c.weight).data(), cpu_bias, expected.data(),
                    c.rows, c.width, c.width, c.width);
  expect_close(widened(y.on_host()), expected, kSame<T>);
}

template <typename T, typename Gradient>
void expect_backward(const Case<T>& c, bool accumulates, bool with_residual) {
  const DeviceArray<T> x(c.x), weight(c.weight), dx(c.probe);  // in place: dx is dy
  const auto stream = numbers_as<T>(c.rows * c.y_stride, 7);
  const DeviceArray<T> residual(stream);
  const auto before = as<Gradient>(widened(c.bias));
  const DeviceArray<Gradient> weight_gradient(before), bias_gradient(before);
  const DeviceArray<float> workspace(2 * column_sum_workspace(c.width));
  norm_backward(c.kind, x.data(), weight.data(), dx.data(),
                with_residual ? residual.data() : nullptr, dx.data(), weight_gradient.data(),
                c.with_bias ? bias_gradient.data() : nullptr, accumulates, c.rows, c.width,
                c.x_stride, c.y_stride, workspace.data(), nullptr);
  auto expected = widened(c.probe);
  auto expected_weight = widened(c.bias), expected_bias = expected_weight;
  cpu::norm_backward<double>(c.kind, widened(c.x).data(), widened(c.weight).data(), expected.data(),
                             expected.data(), expected_weight.data(),
                             c.with_bias ? expected_bias.data() : nullptr, accumulates, c.rows,
                             c.width, c.x_stride, c.y_stride);
  for (std::int64_t i = 0; with_residual && i < c.rows * c.y_stride; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (i % c.y_stride < c.width) expected[at] += static_cast<double>(to_float(stream[at]));
  }
  expect_close(widened(dx.on_host()), expected, kSame<T>);
  expect_close(widened(weight_gradient.on_host()), expected_weight, kSame<Gradient>);
  expect_close(widened(bias_gradient.on_host()), expected_bias, kSame<Gradient>);
}

template <typename T>
void expect_same_as_cpu(std::int64_t rows, std::int64_t width, std::int64_t spare) {
  for (const NormKind kind : {NormKind::kLayer, NormKind::kRms}) {
    for (const bool with_bias : {false, true}) {
      const Case<T> c{kind, rows, width, spare, with_bias};
      expect_forward(c);
      expect_joined(c);
      expect_backward<T, T>(c, false, with_bias);
      expect_backward<T, float>(c, true, !with_bias);
    }
  }
}

TYPED_TEST(Norm, EqualsTheCpuInOneWarp) {
  expect_same_as_cpu<TypeParam>(5, 8, 0);
  expect_same_as_cpu<TypeParam>(3, 13, 2);
  expect_same_as_cpu<TypeParam>(2, 256, 8);
}

TYPED_TEST(Norm, EqualsTheCpuInABlock) {
  expect_same_as_cpu<TypeParam>(4, 1024, 0);
  expect_same_as_cpu<TypeParam>(3, 3001, 1);
  expect_same_as_cpu<TypeParam>(2, 6144, 0);  // 48 KiB of sums
}

TYPED_TEST(Norm, EqualsTheCpuWithManyRows) {
  expect_same_as_cpu<TypeParam>(300, 16, 0);
  expect_same_as_cpu<TypeParam>(1100, 8, 0);  // more than one to each team
}

TYPED_TEST(Norm, FarFromZeroKeepsTheVariance) {
  using T = TypeParam;
  // 128 + {0, 1, 2, 3} are exact in every type; the mean of squares less the square of the mean of
  // them would round by 128^2 * 2^-24 = 0.001 of a variance of 1.25.
  const DeviceArray<T> x(as<T>(std::vector<float>{128, 129, 130, 131})), y(4);
  const DeviceArray<T> ones(as<T>(std::vector<float>(4, 1)));
  norm<T>(NormKind::kLayer, x.data(), ones.data(), nullptr, y.data(), 1, 4, 4, 4, nullptr);
  const double sigma = std::sqrt(1.25 + 1e-5);
  expect_close(widened(y.on_host()),
               std::vector<double>{-1.5 / sigma, -0.5 / sigma, 0.5 / sigma, 1.5 / sigma},
               kRoundingUnit<T> + 0x1p-22);
}

}  // namespace
}  // namespace stepcast::cuda
