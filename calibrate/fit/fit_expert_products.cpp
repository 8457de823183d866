// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/fit_expert_products.h"

#include "calibrate/fit/fit_grouped_products.h"
#include "cost/gemm_cost.h"

namespace stepcast {
namespace {

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

std::vector<TimedGroupedGemm> timed(const Accelerator& accelerator,
                                    const std::vector<ExpertProduct>& products) {
  const double peak = matrix_peak(accelerator, DataType::kBf16).value();
  std::vector<TimedGroupedGemm> out;
  for (const ExpertProduct& product : products) {
    const GroupedGemm grouped = grouped_of(product);
    out.push_back({grouped, flops_of(grouped) / (peak * product.efficiency)});
  }
  return out;
}

}  // namespace

ExpertProductCurve fit_expert_products(const Accelerator& accelerator,
                                       const ExpertProductTable& table, const GemmFit& dense) {
  const DenseForm of_all = [&](DataType) { return dense; };
  const GroupedProductCurve curve =
      fit_grouped_products(accelerator, timed(accelerator, table.products), of_all);
  if (table.held_out.empty()) return {curve.fit, curve.form, curve.form};
  return {curve.fit, curve.form,
          fit_error(grouped_log_ratios(curve.fit, accelerator, timed(accelerator, table.held_out),
                                       of_all))};
}

}  // namespace stepcast
