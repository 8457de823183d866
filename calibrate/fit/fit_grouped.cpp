// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/fit_grouped.h"

#include <algorithm>
#include <cmath>

#include "calibrate/fit/least_squares.h"
#include "core/statistics.h"
#include "cost/gemm_cost.h"

namespace stepcast {
namespace {

// No grouped product is faster than the device's large dense ones, which a form may miss: how much
// faster these are than it says. Engines differ in their kernels, and a step has those of the
// library that multiplies its dense layers too (Transformer Engine, te_general_grouped_gemm).
double most_rate(const Accelerator& accelerator, const GemmFit& dense, DataType input,
                 const std::vector<GemmSample>& samples) {
  constexpr std::int64_t kLarge = 4096;
  std::vector<double> faster;
  for (const GemmSample& sample : samples) {
    if (std::min({sample.m, sample.n, sample.k}) < kLarge) continue;
    const Gemm gemm = gemm_of(sample, input);
    const double measured =
        flops_of(gemm) / (matrix_peak(accelerator, input).value() * sample.efficiency);
    faster.push_back(gemm_form_time(dense, accelerator, gemm, Pace::kShortRun).value() / measured);
  }
  return faster.empty() ? 1 : std::max(1.0, median(faster));
}

struct GroupedCalls {
  GroupedFit products;
  double routed_bytes = 6;      // for an element of a routed token: permuted, and added up again
  double activation_bytes = 6;  // for an element between the products
  double token_bytes = 6;       // for an element of a token of the batch
  double call_s = 2e-5;
};

std::vector<FreeParameter<GroupedCalls>> free_in_groups(double most_rate) {
  return {
      {[](GroupedCalls& c) -> double& { return c.products.rate; }, 0.3, most_rate, 0},
      {[](GroupedCalls& c) -> double& { return c.products.bandwidth; }, 0.3, 1.5, 0},
      {[](GroupedCalls& c) -> double& { return c.routed_bytes; }, 0.1, 60, 0.1},
      {[](GroupedCalls& c) -> double& { return c.activation_bytes; }, 0.1, 60, 0.1},
      {[](GroupedCalls& c) -> double& { return c.token_bytes; }, 0.1, 60, 0.1},
      {[](GroupedCalls& c) -> double& { return c.call_s; }, 1e-7, 2e-4, 0.1}};
}

// One of the two products of `call`, of all experts that a rank holds.
Gemm product_of(const ExpertCall& call, std::int64_t n, std::int64_t k, DataType input) {
  const std::int64_t groups = std::max<std::int64_t>(1, call.experts / call.ranks);
  const std::int64_t rows = call.tokens * call.top_k / (call.ranks * groups);
  return {GemmRole::kForward, groups, std::max<std::int64_t>(1, rows), n, k, input,
          DataType::kBf16,    false};
}

double seconds(const GroupedCalls& calls, const Accelerator& accelerator, const GemmFit& dense,
               DataType input, const ExpertCall& call) {
  const auto product = [&](std::int64_t n, std::int64_t k) {
    return grouped_form_time(calls.products, dense, accelerator, product_of(call, n, k, input),
                             Pace::kShortRun)
        .value();
  };
  const double tokens = static_cast<double>(call.tokens), hidden = static_cast<double>(call.hidden);
  const double routed = tokens * static_cast<double>(call.top_k) / static_cast<double>(call.ranks);
  const double bytes = calls.routed_bytes * routed * hidden +
                       calls.activation_bytes * routed * static_cast<double>(call.inter) +
                       calls.token_bytes * tokens * hidden;
  return product(2 * call.inter, call.hidden) + product(call.hidden, call.inter) +
         bytes / accelerator.memory_bandwidth.value() + calls.call_s;
}

std::vector<double> log_ratios(const GroupedCalls& trial, const Accelerator& accelerator,
                               const GemmFit& dense, DataType input,
                               const std::vector<ExpertCall>& calls) {
  std::vector<double> out;
  out.reserve(calls.size());
  for (const ExpertCall& call : calls) {
    out.push_back(std::log(seconds(trial, accelerator, dense, input, call) / call.seconds));
  }
  return out;
}

}  // namespace

GroupedCurve fit_grouped(const Accelerator& accelerator, const GroupedTable& table,
                         const GemmFit& dense, const std::vector<GemmSample>& samples) {
  const double bound = most_rate(accelerator, dense, table.precision, samples);
  const auto ratios = [&](const GroupedCalls& trial, const std::vector<ExpertCall>& calls) {
    return log_ratios(trial, accelerator, dense, table.precision, calls);
  };
  const auto residuals = [&](const GroupedCalls& trial) { return ratios(trial, table.calls); };
  const GroupedCalls fitted = fit_free(GroupedCalls{}, free_in_groups(bound), residuals);
  return {fitted.products, fit_error(ratios(fitted, table.calls)),
          fit_error(ratios(fitted, table.held_out))};
}

}  // namespace stepcast
