// SPDX-License-Identifier: Apache-2.0
// Robust non-linear least squares for a handful of positive parameters: Levenberg-Marquardt on
// their logarithms, residuals reweighted towards absolute deviations (published tables hold
// outliers). Deterministic: no random starts.
#pragma once

#include <cstddef>
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

// A parameter of a form that is fitted; the others keep their values.
template <class Form>
struct FreeParameter {
  double& (*of)(Form&);
  double low, high;
  double prior;
};

// `start` with its free parameters fitted. `residuals` are those of a form.
template <class Form, class ResidualsOfForm>
Form fit_free(const Form& start, const std::vector<FreeParameter<Form>>& free,
              const ResidualsOfForm& residuals) {
  Form form = start;
  std::vector<FitParameter> parameters;
  for (const FreeParameter<Form>& parameter : free) {
    parameters.push_back({parameter.of(form), parameter.low, parameter.high, parameter.prior});
  }
  const auto with = [&](const std::vector<double>& values) {
    Form out = start;
    for (std::size_t i = 0; i < free.size(); ++i) free[i].of(out) = values[i];
    return out;
  };
  return with(fit_least_squares(
      parameters, [&](const std::vector<double>& trial) { return residuals(with(trial)); }));
}

}  // namespace stepcast
