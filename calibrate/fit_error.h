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

}  // namespace stepcast
