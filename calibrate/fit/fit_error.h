// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace stepcast {

// Relative errors of times: |predicted/measured - 1|.
struct FitError {
  double median = 0;
  double p90 = 0;
  double bias = 0;  // median of predicted/measured - 1
};

FitError fit_error(const std::vector<double>& log_ratios);  // log(predicted/measured)

// No curve is surer: clocks, temperatures and neighbours of another day.
inline constexpr double kLeastLogError = 0.02;
inline constexpr double kMostLogError = 3;  // a factor of 20: nothing is known

// The standard deviation of log errors that these are, were they normal.
double log_error_of(const FitError& error);

}  // namespace stepcast
