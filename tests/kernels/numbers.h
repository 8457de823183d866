// SPDX-License-Identifier: Apache-2.0
// Seeded numbers, comparisons of arrays, and gradients by central differences.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/array.h"

namespace stepcast::cpu {

template <typename T = double>
std::vector<T> numbers(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<T> out(static_cast<std::size_t>(count));
  for (T& value : out) value = static_cast<T>(normal(random));
  return out;
}

template <typename T>
std::vector<T> zeros(std::int64_t count) {
  return std::vector<T>(static_cast<std::size_t>(count));
}

inline Array array_of(std::vector<float>& data) { return {data.data(), DataType::kFp32}; }

template <typename To, typename From>
std::vector<To> converted(const std::vector<From>& from) {
  return std::vector<To>(from.begin(), from.end());
}

// Each element within `tolerance` of the largest expected one.
template <typename T, typename U>
void expect_close(const std::vector<T>& actual, const std::vector<U>& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  double largest = 0;
  for (const U value : expected) largest = std::max(largest, std::abs(static_cast<double>(value)));
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const auto value = static_cast<double>(actual[i]);
    const auto wanted = static_cast<double>(expected[i]);
    ASSERT_LE(std::abs(value - wanted), tolerance * largest)
        << "element " << i << ": " << value << " for " << wanted;
  }
}

inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// d loss / d x[i] by central differences, whose error is about step^2 + 1e-16/step = 1e-10.
template <typename Loss>
std::vector<double> slopes(std::vector<double>& x, const Loss& loss) {
  constexpr double kStep = 1e-5;
  std::vector<double> out;
  for (double& value : x) {
    const double kept = value;
    value = kept + kStep;
    const double above = loss();
    value = kept - kStep;
    const double below = loss();
    value = kept;
    out.push_back((above - below) / (2 * kStep));
  }
  return out;
}

inline constexpr double kSlopeTolerance = 1e-7;
inline constexpr double kSameInDouble = 1e-12;
inline constexpr double kSameInFloat = 5e-6;

}  // namespace stepcast::cpu
