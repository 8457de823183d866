// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/fp8.h"

#include <algorithm>
#include <cmath>

#include "core/each.h"
#include "kernels/cuda/device_case.h"

namespace stepcast::cuda {
namespace {

using Bytes8 = std::vector<std::uint8_t>;

template <typename T>
class Fp8Of : public OnDeviceIn<T> {};
TYPED_TEST_SUITE(Fp8Of, NumberTypes, TypeNames);
class Fp8Numbers : public OnDevice {};

Bytes8 bits_of(const std::vector<Fp8>& numbers) {
  Bytes8 out;
  for (const Fp8 number : numbers) out.push_back(number.bits);
  return out;
}

Bytes8 cast_as_they_are(const std::vector<float>& from) {
  const auto count = static_cast<std::int64_t>(from.size());
  const DeviceArray<float> x(from);
  const DeviceArray<Fp8> out(count);
  cast_to_fp8<float>(x.data(), nullptr, 1, count, out.data(), nullptr, nullptr);
  return bits_of(out.on_host());
}

// Every number is itself, and every midpoint goes to the even neighbour, for either sign.
TEST_F(Fp8Numbers, RoundToTheNearestEven) {
  std::vector<float> from;
  Bytes8 expected;
  for (const int sign : {0, 0x80}) {
    for (int bits = 0; bits < 0x7e; ++bits) {
      const auto below = static_cast<std::uint8_t>(sign | bits);
      const auto above = static_cast<std::uint8_t>(sign | (bits + 1));
      const float low = to_float(Fp8{below}), high = to_float(Fp8{above});
      ASSERT_LT(std::fabs(low), std::fabs(high));
      from.insert(from.end(), {low, (low + high) / 2});
      expected.insert(expected.end(), {below, bits % 2 == 0 ? below : above});
    }
  }
  EXPECT_EQ(cast_as_they_are(from), expected);
}

TEST_F(Fp8Numbers, EndAtTheLargest) {
  EXPECT_EQ(to_float(Fp8{0x7e}), kLargestFp8);
  EXPECT_EQ(cast_as_they_are({448, 449, 1e30F, INFINITY, -1e9F, NAN, 0x1p-10F, 0x1.8p-10F}),
            (Bytes8{0x7e, 0x7e, 0x7e, 0x7e, 0xfe, 0x7f, 0, 1}));
}

TYPED_TEST(Fp8Of, LargestIsThatOfAllElements) {
  using T = TypeParam;
  const DeviceArray<float> workspace(kLargestBlocks), largest(1);
  for (const std::int64_t count : {1, 1000, 70001}) {
    auto x = numbers_as<T>(count, 1);
    x[static_cast<std::size_t>(count - 1)] = rounded<T>(-40);
    const DeviceArray<T> on_device(x);
    find_largest(on_device.data(), count, workspace.data(), largest.data(), nullptr);
    EXPECT_EQ(largest.on_host().front(), 40);
  }
}

// Rows and columns in multiples of a tile, of eight, and of nothing. The largest becomes the
// largest number, and each error is at most half of the distance to the next one: 2^-4 of a number,
// or 2^-10 for those below 2^-6.
TYPED_TEST(Fp8Of, CastsByRowsAndByColumns) {
  using T = TypeParam;
  const std::vector<std::pair<std::int64_t, std::int64_t>> sizes = {
      {64, 128}, {72, 40}, {5, 131}, {130, 3}};
  for (const auto& [rows, columns] : each_of(sizes)) {
    const auto x = numbers_as<T>(rows * columns, 2);
    const auto wide = widened(x);
    double most = 0;
    for (const double value : wide) most = std::max(most, std::abs(value));
    const DeviceArray<T> from(x);
    const DeviceArray<float> largest(std::vector<float>{static_cast<float>(most)});
    const DeviceArray<Fp8> by_rows(rows * columns), by_columns(rows * columns);
    cast_to_fp8(from.data(), largest.data(), rows, columns, by_rows.data(), by_columns.data(),
                nullptr);
    const auto numbers = by_rows.on_host(), turned = by_columns.on_host();
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        const auto at = static_cast<std::size_t>(row * columns + column);
        const double expected = wide[at] * kLargestFp8 / most;
        const double unit = std::max(std::abs(expected), 0x1p-6) * 0x1p-4 * (1 + 1e-6);
        ASSERT_NEAR(to_float(numbers[at]), expected, unit);
        ASSERT_EQ(turned[static_cast<std::size_t>(column * rows + row)].bits, numbers[at].bits);
      }
    }
    const DeviceArray<Fp8> alone(rows * columns);
    cast_to_fp8<T>(from.data(), largest.data(), rows, columns, nullptr, alone.data(), nullptr);
    EXPECT_EQ(bits_of(alone.on_host()), bits_of(turned));
  }
}

}  // namespace
}  // namespace stepcast::cuda
