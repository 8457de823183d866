// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/fp8.h"

#include "kernels/cuda/device_case.h"
#include "kernels/cuda/noise.h"

namespace stepcast::cuda {
namespace {

template <typename T>
class Quantize : public OnDeviceIn<T> {};
TYPED_TEST_SUITE(Quantize, NumberTypes, TypeNames);
class Noise : public OnDevice {};

TYPED_TEST(Quantize, BringsTheLargestToTheLargestOfTheFormat) {
  using T = TypeParam;
  for (const std::int64_t count : {1, 1000, 4099}) {
    const auto x = numbers_as<T>(count, 1);
    double most = 0;
    for (const double value : widened(x)) most = std::max(most, std::abs(value));
    const Shifted<T> on_device(x, 1);
    const DeviceArray<Fp8> out(count);
    const DeviceArray<float> scale(1), largest(1);
    quantize(on_device.data(), out.data(), scale.data(), largest.data(), count, nullptr);
    const auto factor = static_cast<double>(scale.on_host().front());
    EXPECT_NEAR(factor, most / 448, 1e-6 * factor);
    auto back = widened(out.on_host());
    double most_back = 0;
    for (std::size_t i = 0; i < back.size(); ++i) {
      const double value = widened(x)[i];
      most_back = std::max(most_back, std::abs(back[i]));
      // Half a unit of 3 bits of fraction, or of the smallest number, 2^-9.
      EXPECT_NEAR(back[i] * factor, value,
                  1.001 * std::max(std::abs(value) * 0x1p-4, 0x1p-10 * factor));
    }
    EXPECT_EQ(most_back, 448);
  }
}

TYPED_TEST(Quantize, OfZerosKeepsTheScaleOfOne) {
  using T = TypeParam;
  const DeviceArray<T> x(zeros<T>(20));
  const DeviceArray<Fp8> out(20);
  const DeviceArray<float> scale(1), largest(1);
  quantize(x.data(), out.data(), scale.data(), largest.data(), 20, nullptr);
  EXPECT_EQ(scale.on_host().front(), 1.0F);
  EXPECT_EQ(widened(out.on_host()), zeros<double>(20));
}

// Every number of the format is itself, and every midpoint goes to the even neighbour.
TEST(Fp8, RoundsToTheNearestEven) {
  for (unsigned bits = 0; bits < 126; ++bits) {
    const Fp8 below{static_cast<std::uint8_t>(bits)}, above{static_cast<std::uint8_t>(bits + 1)};
    const float low = to_float(below), high = to_float(above);
    ASSERT_LT(low, high);
    EXPECT_EQ(rounded<Fp8>(low).bits, bits);
    EXPECT_EQ(rounded<Fp8>((low + high) / 2).bits, bits % 2 == 0 ? bits : bits + 1);
    EXPECT_EQ(rounded<Fp8>(-high).bits, bits + 1 + 0x80);
  }
  EXPECT_EQ(to_float(rounded<Fp8>(1e9F)), 448.0F);
  EXPECT_TRUE(std::isnan(to_float(rounded<Fp8>(NAN))));
}

TEST(Fp16, RoundsToTheNearestEven) {
  for (unsigned bits = 0; bits < 0x7bff; ++bits) {
    const Fp16 below{static_cast<std::uint16_t>(bits)}, above{static_cast<std::uint16_t>(bits + 1)};
    const float low = to_float(below), high = to_float(above);
    ASSERT_LT(low, high);
    ASSERT_EQ(rounded<Fp16>(low).bits, bits);
    ASSERT_EQ(rounded<Fp16>((low + high) / 2).bits, bits % 2 == 0 ? bits : bits + 1);
  }
  EXPECT_EQ(rounded<Fp16>(65520).bits, 0x7c00);
  EXPECT_EQ(rounded<Fp16>(65519).bits, 0x7bff);
}

TEST(Bf16, RoundsToTheNearestEven) {
  for (unsigned bits = 0; bits < 0x7f7f; ++bits) {
    const Bf16 below{static_cast<std::uint16_t>(bits)}, above{static_cast<std::uint16_t>(bits + 1)};
    const float low = to_float(below), high = to_float(above);
    ASSERT_LT(low, high);
    ASSERT_EQ(rounded<Bf16>(low).bits, bits);
    ASSERT_EQ(rounded<Bf16>(low / 2 + high / 2).bits, bits % 2 == 0 ? bits : bits + 1);
  }
  EXPECT_EQ(rounded<Bf16>(INFINITY).bits, 0x7f80);
}

TEST_F(Noise, FillsTheRangeEvenly) {
  constexpr std::int64_t kCount = 20000;
  const DeviceArray<float> data(kCount), other(kCount);
  fill_with_noise(data.data(), kCount, 1, nullptr);
  fill_with_noise(other.data(), kCount, 2, nullptr);
  double sum = 0, squares = 0, product = 0;
  const auto x = data.on_host(), y = other.on_host();
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_GE(x[i], -1);
    ASSERT_LT(x[i], 1);
    sum += x[i];
    squares += static_cast<double>(x[i]) * x[i];
    product += static_cast<double>(x[i]) * y[i];
  }
  // Standard deviations of the means: sqrt(1/3/20000) = 0.004, sqrt(4/45/20000) = 0.002, 0.0024.
  EXPECT_NEAR(sum / kCount, 0, 0.02);
  EXPECT_NEAR(squares / kCount, 1.0 / 3, 0.01);
  EXPECT_NEAR(product / kCount, 0, 0.012);
}

}  // namespace
}  // namespace stepcast::cuda
