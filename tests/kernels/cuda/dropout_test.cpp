// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/dropout.h"

#include "kernels/cpu/dropout.h"
#include "kernels/cuda/device_case.h"

namespace stepcast::cuda {
namespace {

template <typename T>
class Dropout : public OnDeviceIn<T> {};
TYPED_TEST_SUITE(Dropout, NumberTypes, TypeNames);

template <typename T>
void expect_same_as_cpu(const DropoutShape& shape, bool with_bias, bool with_residual) {
  const std::int64_t count = shape.rows * shape.columns;
  const auto x = numbers_as<T>(count, 1), bias = numbers_as<T>(shape.columns, 2),
             residual = numbers_as<T>(count, 3);
  const auto wide_bias = widened(bias), wide_residual = widened(residual);
  auto expected = zeros<double>(count);
  std::vector<std::int8_t> kept(static_cast<std::size_t>(count), 7);
  cpu::dropout<double>(shape, widened(x).data(), with_bias ? wide_bias.data() : nullptr,
                       with_residual ? wide_residual.data() : nullptr, expected.data(),
                       kept.data());
  const DeviceArray<T> in(x), offsets(bias), more(residual), out(count);
  const DeviceArray<std::int8_t> mask(std::vector<std::int8_t>(kept.size(), 9));
  dropout<T>(shape, in.data(), with_bias ? offsets.data() : nullptr,
             with_residual ? more.data() : nullptr, out.data(), mask.data(), nullptr);
  EXPECT_EQ(mask.on_host(), kept);
  expect_close(widened(out.on_host()), expected, kSame<T>);
  cpu::dropout_backward<double>(shape, widened(x).data(), kept.data(), expected.data());
  dropout_backward<T>(shape, in.data(), mask.data(), out.data(), nullptr);
  expect_close(widened(out.on_host()), expected, kSame<T>);
}

TYPED_TEST(Dropout, DropsWhatTheCpuDrops) {
  for (const bool with_bias : {false, true}) {
    for (const bool with_residual : {false, true}) {
      expect_same_as_cpu<TypeParam>({3, 24, 0.1, 1}, with_bias, with_residual);
      expect_same_as_cpu<TypeParam>({5, 2051, 0.5, 2}, with_bias, with_residual);
    }
  }
}

}  // namespace
}  // namespace stepcast::cuda
