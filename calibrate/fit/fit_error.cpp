// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/fit_error.h"

#include <algorithm>
#include <cmath>

#include "core/statistics.h"

namespace stepcast {

FitError fit_error(const std::vector<double>& log_ratios) {
  std::vector<double> sizes, errors;
  for (const double ratio : log_ratios) {
    errors.push_back(std::expm1(ratio));
    sizes.push_back(std::abs(errors.back()));
  }
  return {median(sizes), quantile(sizes, 0.9), median(errors)};
}

double log_error_of(const FitError& error) {
  // For normal errors, the median and the 0.9 quantile of their sizes, in standard deviations.
  constexpr double kMedianOfSizes = 0.6745, kP90OfSizes = 1.6449;
  const double largest =
      std::max(std::log1p(error.median) / kMedianOfSizes, std::log1p(error.p90) / kP90OfSizes);
  return std::clamp(largest, kLeastLogError, kMostLogError);
}

}  // namespace stepcast
