// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit_error.h"

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

}  // namespace stepcast
