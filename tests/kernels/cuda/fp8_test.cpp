// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/fp8.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/each.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/fp8.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/device_case.h"

namespace stepcast::cuda {
namespace {

using Bytes8 = std::vector<std::uint8_t>;

template <typename T>
class Fp8Of : public OnDeviceIn<T> {};
TYPED_TEST_SUITE(Fp8Of, NumberTypes, TypeNames);
class Fp8OnDevice : public OnDevice {};

Bytes8 bits_of(const std::vector<Fp8>& numbers) {
  Bytes8 out;
  for (const Fp8 number : numbers) out.push_back(number.bits);
  return out;
}

Bytes8 cast_as_they_are(const std::vector<float>& from, Fp8Format format = Fp8Format::kE4m3) {
  const auto count = static_cast<std::int64_t>(from.size());
  const DeviceArray<float> x(from);
  const DeviceArray<Fp8> out(count);
  cast_to_fp8<float>(format, x.data(), nullptr, nullptr, 1, count, out.data(), nullptr, nullptr);
  return bits_of(out.on_host());
}

constexpr std::array kFormats = {Fp8Format::kE4m3, Fp8Format::kE5m2};

// Every number is itself, and every midpoint goes to the even neighbour, for either sign.
TEST_F(Fp8OnDevice, RoundToTheNearestEven) {
  for (const Fp8Format format : kFormats) {
    std::vector<float> from;
    Bytes8 expected;
    for (const int sign : {0, 0x80}) {
      for (int bits = 0; bits < layout_of(format).largest_code; ++bits) {
        const auto below = static_cast<std::uint8_t>(sign | bits);
        const auto above = static_cast<std::uint8_t>(sign | (bits + 1));
        const float low = to_float(Fp8{below}, format), high = to_float(Fp8{above}, format);
        ASSERT_LT(std::fabs(low), std::fabs(high));
        from.insert(from.end(), {low, (low + high) / 2});
        expected.insert(expected.end(), {below, bits % 2 == 0 ? below : above});
      }
    }
    EXPECT_EQ(cast_as_they_are(from, format), expected);
    Bytes8 on_cpu;
    for (const float value : from) on_cpu.push_back(cpu::to_fp8(value, format));
    EXPECT_EQ(on_cpu, expected);
  }
}

TEST_F(Fp8OnDevice, EndAtTheLargest) {
  const std::vector<float> from{448,   449, 57344,    1e30F,      INFINITY,
                                -1e9F, NAN, 0x1p-10F, 0x1.8p-10F, 0x1.8p-17F};
  const Bytes8 forward{0x7e, 0x7e, 0x7e, 0x7e, 0x7e, 0xfe, 0x7f, 0, 1, 0},
      gradients{0x5f, 0x5f, 0x7b, 0x7b, 0x7b, 0xfb, 0x7f, 0x14, 0x16, 1};
  EXPECT_EQ(to_float(Fp8{0x7e}), 448);
  EXPECT_EQ(to_float(Fp8{0x7b}, Fp8Format::kE5m2), 57344);
  EXPECT_EQ(cast_as_they_are(from), forward);
  EXPECT_EQ(cast_as_they_are(from, Fp8Format::kE5m2), gradients);
  EXPECT_TRUE(std::isnan(cpu::fp8_values(Fp8Format::kE4m3)[0x7f]));
}

TYPED_TEST(Fp8Of, LargestIsThatOfAllElements) {
  using T = TypeParam;
  const DeviceArray<float> workspace(kLargestBlocks), largest(1);
  for (const std::int64_t count : {1, 1000, 70001}) {
    auto x = numbers_as<T>(count, 1);
    x[static_cast<std::size_t>(count - 1)] = rounded<T>(-40);
    const DeviceArray<T> on_device(x);
    find_largest(on_device.data(), count, workspace.data(), largest.data(), false, nullptr);
    EXPECT_EQ(largest.on_host().front(), 40);
    const DeviceArray<float> larger(std::vector<float>{50}), smaller(std::vector<float>{30});
    find_largest(on_device.data(), count, workspace.data(), larger.data(), true, nullptr);
    find_largest(on_device.data(), count, workspace.data(), smaller.data(), true, nullptr);
    EXPECT_EQ(larger.on_host().front(), 50);
    EXPECT_EQ(smaller.on_host().front(), 40);
  }
}

// Rows and columns in multiples of a tile, of eight, and of nothing. The scale is a power of two
// that leaves the largest in the upper half of the numbers, and each error is at most half of the
// distance to the next one: 2^-4 of a number in e4m3, or 2^-10 for those below 2^-6.
TYPED_TEST(Fp8Of, CastsByRowsAndByColumns) {
  using T = TypeParam;
  const std::vector<std::pair<std::int64_t, std::int64_t>> sizes = {
      {64, 128}, {72, 40}, {5, 131}, {130, 3}};
  for (const auto& [rows, columns] : each_of(sizes)) {
    for (const Fp8Format format : kFormats) {
      const Fp8Layout layout = layout_of(format);
      const auto x = numbers_as<T>(rows * columns, 2);
      const auto wide = widened(x);
      double most = 0;
      for (const double value : wide) most = std::max(most, std::abs(value));
      const DeviceArray<T> from(x);
      const DeviceArray<float> largest(std::vector<float>{static_cast<float>(most)}), factor(1);
      const DeviceArray<Fp8> by_rows(rows * columns), by_columns(rows * columns);
      cast_to_fp8(format, from.data(), largest.data(), factor.data(), rows, columns, by_rows.data(),
                  by_columns.data(), nullptr);
      const double scale = 1 / static_cast<double>(factor.on_host().front());
      EXPECT_EQ(std::log2(scale), cpu::scale_exponent(static_cast<float>(most), format));
      EXPECT_LE(most * scale, std::ldexp(1.75, layout.top));
      EXPECT_GT(2 * most * scale, std::ldexp(1.75, layout.top));
      const auto numbers = by_rows.on_host(), turned = by_columns.on_host();
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t column = 0; column < columns; ++column) {
          const auto at = static_cast<std::size_t>(row * columns + column);
          const double expected = wide[at] * scale;
          const double unit =
              std::ldexp(std::max(std::abs(expected), std::ldexp(1, 1 - layout.bias)),
                         -layout.fraction_bits - 1);
          ASSERT_NEAR(to_float(numbers[at], format), expected, unit);
          ASSERT_EQ(turned[static_cast<std::size_t>(column * rows + row)].bits, numbers[at].bits);
        }
      }
      const DeviceArray<Fp8> alone(rows * columns), again(rows * columns);
      cast_to_fp8<T>(format, from.data(), largest.data(), nullptr, rows, columns, nullptr,
                     alone.data(), nullptr);
      EXPECT_EQ(bits_of(alone.on_host()), bits_of(turned));
      transpose_fp8(by_rows.data(), again.data(), rows, columns, nullptr);
      EXPECT_EQ(bits_of(again.on_host()), bits_of(turned));
    }
  }
}

TEST(Fp8Scale, LeavesTheLargestAmongTheNumbers) {
  EXPECT_EQ(cpu::scale_exponent(448, Fp8Format::kE4m3), 0);
  EXPECT_EQ(cpu::scale_exponent(449, Fp8Format::kE4m3), -1);
  EXPECT_EQ(cpu::scale_exponent(1, Fp8Format::kE5m2), 15);
  EXPECT_EQ(cpu::scale_exponent(0, Fp8Format::kE4m3), 0);
  EXPECT_EQ(cpu::scale_exponent(INFINITY, Fp8Format::kE4m3), 0);
  EXPECT_EQ(cpu::scale_exponent(1e-44F, Fp8Format::kE4m3), 120);
}

// Through the interface of all devices: the processor's copies have the same bits, and its products
// are those of the numbers that the copies stand for.
TEST_F(Fp8OnDevice, MultiplyAsOnTheProcessor) {
  constexpr std::int64_t kM = 32, kN = 48, kK = 64;
  const auto a = cpu::numbers<float>(kM * kK, 1), b = cpu::numbers<float>(kN * kK, 2);
  const auto cpu_kernels = make_cpu_kernels();
  CudaKernels cuda_kernels({.tf32 = false}, {});
  for (const Fp8Format format : kFormats) {  // of the first operand: gradients have the second
    const auto product = [&](Kernels& kernels, const float* x, const float* y, std::uint8_t* x8,
                             std::uint8_t* y8, float* figures, float* out) {
      const auto operand = [&](const float* wide, std::int64_t rows, Fp8Format of, float* figure,
                               std::uint8_t* copy) {
        const Array from{const_cast<float*>(wide), DataType::kFp32};
        kernels.find_largest({.x = from, .count = rows * kK, .largest = figure});
        kernels.cast_to_fp8({.x = from,
                             .rows = rows,
                             .columns = kK,
                             .format = of,
                             .largest = figure,
                             .factor = figure + 1,
                             .by_rows = {copy, DataType::kFp8}});
        return Fp8Numbers{of, figure + 1};
      };
      const Fp8Numbers left = operand(x, kM, format, figures, x8);
      const Fp8Numbers right = operand(y, kN, Fp8Format::kE4m3, figures + 2, y8);
      kernels.gemm({.m = kM,
                    .n = kN,
                    .k = kK,
                    .a = {{x8, DataType::kFp8}, kK, false, left},
                    .b = {{y8, DataType::kFp8}, kK, true, right},
                    .c = {{out, DataType::kFp32}, kN}});
    };
    Bytes8 a8(a.size()), b8(b.size());
    std::vector<float> figures(4), expected(kM * kN);
    product(*cpu_kernels, a.data(), b.data(), a8.data(), b8.data(), figures.data(),
            expected.data());
    const DeviceArray<float> x(a), y(b), of_device(4), out(kM * kN);
    const DeviceArray<Fp8> x8(kM * kK), y8(kN * kK);
    try {
      product(cuda_kernels, x.data(), y.data(), &x8.data()->bits, &y8.data()->bits,
              of_device.data(), out.data());
    } catch (const CudaError& error) {
      GTEST_SKIP() << "this GPU multiplies no fp8: " << error.what();
    }
    EXPECT_EQ(of_device.on_host(), figures);
    EXPECT_EQ(bits_of(x8.on_host()), a8);
    EXPECT_EQ(bits_of(y8.on_host()), b8);
    // Sums of 64 products; fast ones keep 14 bits of fraction on Hopper.
    expect_close(out.on_host(), expected, 0x1p-9);
    double wanted = 0;  // the first, by the numbers themselves
    for (std::size_t l = 0; l < kK; ++l) {
      wanted += static_cast<double>(to_float(Fp8{a8[l]}, format)) *
                static_cast<double>(to_float(Fp8{b8[l]}));
    }
    EXPECT_NEAR(expected[0], wanted * static_cast<double>(figures[1] * figures[3]), 1e-5);
  }
}

}  // namespace
}  // namespace stepcast::cuda
