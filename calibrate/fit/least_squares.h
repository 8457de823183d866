// SPDX-License-Identifier: Apache-2.0
// Robust non-linear least squares for a handful of positive parameters: Levenberg-Marquardt on
// their logarithms, residuals reweighted towards absolute deviations (published tables hold
// outliers). Deterministic: no random starts.
#pragma once

#include <functional>
#include <vector>

namespace stepcast {

struct FitParameter {
  double start;
  double low, high;  // the fit stays inside; all positive
  double prior = 0;  // residuals that pull log(value/start) towards 0: sqrt of their weight
};

// Residuals of the parameters' values; always equally many.
using Residuals = std::function<std::vector<double>(const std::vector<double>&)>;

struct LeastSquaresOptions {
  int iterations = 60;
  double step = 0.01;    // of the difference quotient, in log space
  double robust = 0.05;  // residuals above this count by their absolute value
};

std::vector<double> fit_least_squares(const std::vector<FitParameter>& parameters,
                                      const Residuals& residuals,
                                      const LeastSquaresOptions& options = {});

}  // namespace stepcast
