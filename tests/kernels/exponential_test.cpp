// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/exponential.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/softmax.h"
#include "kernels/cpu/widest.h"
#include "kernels/numbers.h"

namespace stepcast::cpu {
namespace {

template <typename T>
T exponential_of(T x) {
  T out[kLanes<T>];
  store<T>(exponential<T>(broadcast(x)), out, kLanes<T>);
  return out[kLanes<T> - 1];
}

template <typename T>
double largest_relative_error(double from, double to) {
  double largest = 0;
  for (int i = 0; i <= 100'000; ++i) {
    const T x = static_cast<T>(from + (to - from) * i / 100'000);
    const long double exact = std::exp(static_cast<long double>(x));
    const auto error = static_cast<double>(std::abs(exponential_of(x) / exact - 1));
    largest = std::max(largest, error);
  }
  return largest;
}

TEST(Exponential, IsWithinTwoUnitsOfTheLastPlace) {
  EXPECT_LT(largest_relative_error<float>(-87.3, 88.3), 2 * 0x1p-23);
  EXPECT_LT(largest_relative_error<double>(-708.3, 709.4), 2 * 0x1p-52);
  EXPECT_LT(largest_relative_error<double>(-1, 1), 2 * 0x1p-52);
  EXPECT_EQ(exponential_of(0.0F), 1.0F);
  EXPECT_EQ(exponential_of(0.0), 1.0);
}

TEST(Exponential, OfWhatIsMaskedIsZeroAndOfNoNumberNone) {
  EXPECT_EQ(exponential_of(-std::numeric_limits<float>::infinity()), 0.0F);
  EXPECT_EQ(exponential_of(-std::numeric_limits<double>::infinity()), 0.0);
  EXPECT_EQ(exponential_of(-88.0F), 0.0F);
  EXPECT_EQ(exponential_of(-1e30), 0.0);
  EXPECT_TRUE(std::isnan(exponential_of(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::isnan(exponential_of(std::numeric_limits<double>::quiet_NaN())));
}

TEST(Exponential, AboveTheRangeIsInfinite) {
  EXPECT_TRUE(std::isinf(exponential_of(88.4F)));
  EXPECT_TRUE(std::isinf(exponential_of(1e30F)));
  EXPECT_TRUE(std::isinf(exponential_of(709.5)));
  EXPECT_TRUE(std::isinf(exponential_of(std::numeric_limits<double>::infinity())));
}

template <typename T>
void expect_same_bits_of_every_width() {
  if (!has_avx2()) GTEST_SKIP() << "this processor has no AVX2";
  const auto x = numbers<T>(37, 5);
  auto narrow = zeros<T>(38);
  auto wide = narrow;
  run_baseline([&]() STEPCAST_BODY {
    narrow.back() = exponentials(x.data(), narrow.data(), 37, T(2.5), largest_of(x.data(), 37));
  });
  run_avx2([&]() STEPCAST_BODY {
    wide.back() = exponentials(x.data(), wide.data(), 37, T(2.5), largest_of(x.data(), 37));
  });
  EXPECT_EQ(std::memcmp(narrow.data(), wide.data(), narrow.size() * sizeof(T)), 0);
}

TEST(Pack, GivesTheSameBitsWithNarrowAndWideRegistersInFloat) {
  expect_same_bits_of_every_width<float>();
}
TEST(Pack, GivesTheSameBitsWithNarrowAndWideRegistersInDouble) {
  expect_same_bits_of_every_width<double>();
}

TEST(Pack, LargestIsFoundInEveryLane) {
  for (std::size_t at = 0; at < 21; ++at) {
    auto row = zeros<float>(21);
    for (float& value : row) value = -3;
    row[at] = -2;
    EXPECT_EQ(largest_of(row.data(), 21), -2.0F);
  }
  EXPECT_EQ(largest_of<double>(nullptr, 0), -std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace stepcast::cpu
