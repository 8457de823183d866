// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/activation.h"

#include "kernels/cpu/activation.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cuda/device_case.h"

namespace stepcast::cuda {
namespace {

template <typename T>
class Activation : public OnDeviceIn<T> {};
TYPED_TEST_SUITE(Activation, NumberTypes, TypeNames);

template <typename T>
void expect_same_as_cpu(ActivationKind kind, std::int64_t rows, std::int64_t width,
                        bool with_bias) {
  const std::int64_t up_width = kind == ActivationKind::kSwiglu ? 2 * width : width;
  const auto up = numbers_as<T>(rows * up_width, 1), bias = numbers_as<T>(up_width, 2);
  const auto probe = numbers_as<T>(rows * width, 3);
  const auto wide_bias = widened(bias);
  const double* cpu_bias = with_bias ? wide_bias.data() : nullptr;
  const DeviceArray<T> in(up), offsets(bias), gradient(probe), out(rows * width),
      up_gradient(rows * up_width);
  const T* device_bias = with_bias ? offsets.data() : nullptr;

  auto expected = zeros<double>(rows * width);
  cpu::activation(kind, widened(up).data(), cpu_bias, expected.data(), rows, width);
  activation(kind, in.data(), device_bias, out.data(), rows, width, nullptr);
  expect_close(widened(out.on_host()), expected, kSame<T>);

  auto expected_gradient = zeros<double>(rows * up_width);
  cpu::activation_backward(kind, widened(up).data(), cpu_bias, widened(probe).data(),
                           expected_gradient.data(), rows, width);
  activation_backward<T, T>(kind, in.data(), device_bias, gradient.data(), up_gradient.data(),
                            nullptr, rows, width, nullptr);
  expect_close(widened(up_gradient.on_host()), expected_gradient, kSame<T>);
}

template <typename T, typename Gradient>
void expect_sums_like_the_cpu(ActivationKind kind, std::int64_t rows, std::int64_t width,
                              bool accumulate) {
  const std::int64_t up_width = kind == ActivationKind::kSwiglu ? 2 * width : width;
  const auto up = numbers_as<T>(rows * up_width, 1), bias = numbers_as<T>(up_width, 2);
  const auto probe = numbers_as<T>(rows * width, 3);
  auto expected = zeros<double>(rows * up_width);
  cpu::activation_backward(kind, widened(up).data(), widened(bias).data(), widened(probe).data(),
                           expected.data(), rows, width);
  const auto before = as<Gradient>(widened(bias));
  auto sums = widened(before);
  cpu::bias_gradient(expected.data(), sums.data(), rows, up_width, accumulate);
  const DeviceArray<T> in(up), offsets(bias), gradient(probe), up_gradient(rows * up_width);
  const DeviceArray<Gradient> of_bias(before);
  const DeviceArray<float> workspace(column_sum_workspace(up_width));
  const ActivationBias<Gradient> wanted{of_bias.data(), accumulate, workspace.data()};
  activation_backward(kind, in.data(), offsets.data(), gradient.data(), up_gradient.data(), &wanted,
                      rows, width, nullptr);
  expect_close(widened(up_gradient.on_host()), expected, kSame<T>);
  expect_close(widened(of_bias.on_host()), sums, kSame<Gradient>);
}

TYPED_TEST(Activation, SumsTheGradientOfItsBias) {
  using T = TypeParam;
  for (const auto kind : {ActivationKind::kGelu, ActivationKind::kSwiglu}) {
    expect_sums_like_the_cpu<T, T>(kind, 5, 3, false);
    expect_sums_like_the_cpu<T, float>(kind, 300, 264, true);
    expect_sums_like_the_cpu<T, float>(kind, 4, 515, false);
  }
}

TYPED_TEST(Activation, EqualsTheCpu) {
  for (const auto kind : {ActivationKind::kGelu, ActivationKind::kSwiglu}) {
    for (const bool with_bias : {false, true}) {
      expect_same_as_cpu<TypeParam>(kind, 3, 1, with_bias);
      expect_same_as_cpu<TypeParam>(kind, 4, 64, with_bias);
      expect_same_as_cpu<TypeParam>(kind, 2, 2059, with_bias);
    }
  }
}

TYPED_TEST(Activation, ReadsHalvesThatLieApart) {
  using T = TypeParam;
  constexpr auto kKind = ActivationKind::kSwiglu;
  constexpr std::int64_t kRows = 3;
  for (const std::int64_t width : {3, 64}) {
    const auto gates = numbers_as<T>(kRows * width, 1), linear = numbers_as<T>(kRows * width, 2);
    const auto probe = numbers_as<T>(kRows * width, 3);
    std::vector<T> rows;
    for (std::int64_t row = 0; row < kRows; ++row) {
      for (const auto& half : {gates, linear}) {
        rows.insert(rows.end(), half.begin() + row * width, half.begin() + (row + 1) * width);
      }
    }
    const DeviceArray<T> whole(rows), first(gates), second(linear), gradient(probe);
    const DeviceArray<T> out(kRows * width), of_halves(kRows * width);
    activation<T>(kKind, whole.data(), nullptr, out.data(), kRows, width, nullptr);
    activation<T>(kKind, first.data(), nullptr, of_halves.data(), kRows, width, nullptr,
                  second.data());
    EXPECT_EQ(widened(of_halves.on_host()), widened(out.on_host()));
    const DeviceArray<T> dx(2 * kRows * width), dx_of_halves(2 * kRows * width);
    activation_backward<T, T>(kKind, whole.data(), nullptr, gradient.data(), dx.data(), nullptr,
                              kRows, width, nullptr);
    activation_backward<T, T>(kKind, first.data(), nullptr, gradient.data(), dx_of_halves.data(),
                              nullptr, kRows, width, nullptr, second.data());
    EXPECT_EQ(widened(dx_of_halves.on_host()), widened(dx.on_host()));
  }
}

TYPED_TEST(Activation, FarOutItIsTheIdentityOrNothing) {
  using T = TypeParam;
  const DeviceArray<T> up(as<T>(std::vector<float>{200, -200, 30, -30})), out(4);
  activation<T>(ActivationKind::kGelu, up.data(), nullptr, out.data(), 1, 4, nullptr);
  EXPECT_EQ(widened(out.on_host()), (std::vector<double>{200, 0, 30, 0}));
  activation_backward<T, T>(ActivationKind::kGelu, up.data(), nullptr, up.data(), out.data(),
                            nullptr, 1, 4, nullptr);
  EXPECT_EQ(widened(out.on_host()), (std::vector<double>{200, 0, 30, 0}));
}

}  // namespace
}  // namespace stepcast::cuda
