// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/fit_grouped_products.h"

#include <cmath>

#include "calibrate/fit/least_squares.h"
#include "calibrate/fit/left_out.h"
#include "core/assert.h"
#include "cost/gemm_cost.h"

namespace stepcast {
namespace {

constexpr std::size_t kFewestForRoles = 8;

using GroupedParameters = std::vector<FreeParameter<GroupedFit>>;

const GroupedParameters& free_parameters(std::size_t products) {
  static const GroupedParameters all = {
      {[](GroupedFit& g) -> double& { return g.rate; }, 0.3, 1.6, 0},
      {[](GroupedFit& g) -> double& { return g.bandwidth; }, 0.2, 1.5, 0},
      {[](GroupedFit& g) -> double& { return g.role_factor[1]; }, 0.5, 2, 0},
      {[](GroupedFit& g) -> double& { return g.role_factor[2]; }, 0.5, 3, 0},
      {[](GroupedFit& g) -> double& { return g.group_s; }, 1e-8, 5e-5, 0.02}};
  static const GroupedParameters few = {
      {[](GroupedFit& g) -> double& { return g.rate; }, 0.1, 1.6, 0.02},
      {[](GroupedFit& g) -> double& { return g.group_s; }, 1e-8, 5e-5, 0.1}};
  return products < kFewestForRoles ? few : all;
}

GroupedFit fit_products(const Accelerator& accelerator,
                        const std::vector<TimedGroupedGemm>& products, const DenseForm& dense) {
  GroupedFit start;
  start.group_s = 1e-6;
  return fit_free(start, free_parameters(products.size()), [&](const GroupedFit& trial) {
    return grouped_log_ratios(trial, accelerator, products, dense);
  });
}

}  // namespace

std::vector<double> grouped_log_ratios(const GroupedFit& trial, const Accelerator& accelerator,
                                       const std::vector<TimedGroupedGemm>& products,
                                       const DenseForm& dense) {
  std::vector<double> out;
  out.reserve(products.size());
  for (const TimedGroupedGemm& product : products) {
    const double form =
        grouped_form_time(trial, dense(product.work.input), accelerator, mean_gemm_of(product.work))
            .value();
    out.push_back(std::log(form / product.seconds));
  }
  return out;
}

GroupedProductCurve fit_grouped_products(const Accelerator& accelerator,
                                         const std::vector<TimedGroupedGemm>& products,
                                         const DenseForm& dense) {
  STEPCAST_ASSERT(!products.empty(), "something was measured");
  GroupedProductCurve out;
  out.fit = fit_products(accelerator, products, dense);
  out.form = fit_error(grouped_log_ratios(out.fit, accelerator, products, dense));
  if (products.size() < 2) return out;
  out.held_out = fit_error(left_out_errors(products, [&](const auto& others, const auto& left_out) {
    return grouped_log_ratios(fit_products(accelerator, others, dense), accelerator, left_out,
                              dense);
  }));
  return out;
}

}  // namespace stepcast
