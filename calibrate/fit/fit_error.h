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

// No curve is more certain than this: clocks, temperatures and neighbours differ from day to day.
inline constexpr double kLeastLogError = 0.02;
inline constexpr double kMostLogError = 3;  // a factor of 20: nothing is known

// The standard deviation of normal log errors that have these quantiles.
double log_error_of(const FitError& error);

}  // namespace stepcast
