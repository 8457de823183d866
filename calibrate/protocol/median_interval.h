// SPDX-License-Identifier: Apache-2.0
// A confidence interval of the median from order statistics: for n independent samples of any
// continuous distribution the l-th smallest and the l-th largest enclose the median with
// probability 1 - 2 P(B < l), B binomial of n trials with 1/2 each (David and Nagaraja, Order
// Statistics, 3rd edition 2003, section 7.1; Le Boudec, Performance Evaluation, 2010, theorem 2.1).
// The largest such l is taken, so that the coverage is at least what is asked.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace stepcast {

struct Rows;  // core/rows.h

inline constexpr double kLongestTime_s = 1e9;  // beyond it a duration is a mistake

struct MedianInterval {
  double low = 0;
  double high = 0;

  static Rows fields();
};

// l above, counted from 1. None when even the extremes cover too little: n < 6 for 95 %.
std::optional<std::int64_t> median_interval_rank(std::int64_t n, double confidence = 0.95);

std::optional<MedianInterval> median_interval(const std::vector<double>& sorted,
                                              double confidence = 0.95);

}  // namespace stepcast
