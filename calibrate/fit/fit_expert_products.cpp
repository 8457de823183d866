// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/fit_expert_products.h"

#include <cmath>

#include "calibrate/fit/least_squares.h"
#include "cost/gemm_cost.h"

namespace stepcast {
namespace {

const std::vector<FreeParameter<GroupedFit>>& free_parameters() {
  static const std::vector<FreeParameter<GroupedFit>> parameters = {
      {[](GroupedFit& g) -> double& { return g.rate; }, 0.3, 1.6, 0},
      {[](GroupedFit& g) -> double& { return g.bandwidth; }, 0.2, 1.5, 0},
      {[](GroupedFit& g) -> double& { return g.role_factor[1]; }, 0.5, 2, 0},
      {[](GroupedFit& g) -> double& { return g.role_factor[2]; }, 0.5, 3, 0},
      {[](GroupedFit& g) -> double& { return g.group_s; }, 1e-8, 5e-5, 0.02}};
  return parameters;
}

GroupedGemm grouped_of(const ExpertProduct& product) {
  const bool gradient = product.role == GemmRole::kWeightGradient;
  return {product.role,
          product.experts,
          product.rows,
          product.outputs,
          product.inputs,
          DataType::kBf16,
          gradient ? DataType::kFp32 : DataType::kBf16,
          gradient};
}

std::vector<double> log_ratios(const GroupedFit& trial, const Accelerator& accelerator,
                               const GemmFit& dense, const std::vector<ExpertProduct>& products) {
  std::vector<double> out;
  out.reserve(products.size());
  const double peak = matrix_peak(accelerator, DataType::kBf16).value();
  for (const ExpertProduct& product : products) {
    const GroupedGemm grouped = grouped_of(product);
    const double measured = flops_of(grouped) / (peak * product.efficiency);
    const double form = grouped_form_time(trial, dense, accelerator, mean_gemm_of(grouped)).value();
    out.push_back(std::log(form / measured));
  }
  return out;
}

}  // namespace

ExpertProductCurve fit_expert_products(const Accelerator& accelerator,
                                       const ExpertProductTable& table, const GemmFit& dense) {
  GroupedFit start;
  start.group_s = 1e-6;
  const auto residuals = [&](const GroupedFit& trial) {
    return log_ratios(trial, accelerator, dense, table.products);
  };
  const GroupedFit fitted = fit_free(start, free_parameters(), residuals);
  const FitError form = fit_error(residuals(fitted));
  if (table.held_out.empty()) return {fitted, form, form};
  return {fitted, form, fit_error(log_ratios(fitted, accelerator, dense, table.held_out))};
}

}  // namespace stepcast
