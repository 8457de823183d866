// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/fit_grouped.h"

#include <algorithm>
#include <cmath>

#include "calibrate/fit/least_squares.h"
#include "cost/gemm_cost.h"

namespace stepcast {
namespace {

// The dense form is of the median engine, these calls of the quickest, whose large dense products
// are up to 1.25 times as fast (GB200); no grouped product is faster than those.
constexpr double kMostRate = 1.25;

struct GroupedCalls {
  GroupedFit products;
  double routed_bytes = 6;      // for an element of a routed token: permuted, and added up again
  double activation_bytes = 6;  // for an element between the products
  double token_bytes = 6;       // for an element of a token of the batch
  double call_s = 2e-5;
};

const std::vector<FreeParameter<GroupedCalls>>& free_in_groups() {
  static const std::vector<FreeParameter<GroupedCalls>> parameters = {
      {[](GroupedCalls& c) -> double& { return c.products.rate; }, 0.3, kMostRate, 0},
      {[](GroupedCalls& c) -> double& { return c.products.bandwidth; }, 0.3, 1.5, 0},
      {[](GroupedCalls& c) -> double& { return c.routed_bytes; }, 0.1, 60, 0.1},
      {[](GroupedCalls& c) -> double& { return c.activation_bytes; }, 0.1, 60, 0.1},
      {[](GroupedCalls& c) -> double& { return c.token_bytes; }, 0.1, 60, 0.1},
      {[](GroupedCalls& c) -> double& { return c.call_s; }, 1e-7, 2e-4, 0.1}};
  return parameters;
}

// One of the two products of `call`, of all experts that a rank holds.
Gemm product_of(const ExpertCall& call, std::int64_t n, std::int64_t k) {
  const std::int64_t groups = std::max<std::int64_t>(1, call.experts / call.ranks);
  const std::int64_t rows = call.tokens * call.top_k / (call.ranks * groups);
  return {GemmRole::kForward, groups, std::max<std::int64_t>(1, rows), n, k, DataType::kBf16,
          DataType::kBf16,    false};
}

double seconds(const GroupedCalls& calls, const Accelerator& accelerator, const GemmFit& dense,
               const ExpertCall& call) {
  const auto product = [&](std::int64_t n, std::int64_t k) {
    return grouped_form_time(calls.products, dense, accelerator, product_of(call, n, k),
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
                               const GemmFit& dense, const std::vector<ExpertCall>& calls) {
  std::vector<double> out;
  out.reserve(calls.size());
  for (const ExpertCall& call : calls) {
    out.push_back(std::log(seconds(trial, accelerator, dense, call) / call.seconds));
  }
  return out;
}

}  // namespace

GroupedCurve fit_grouped(const Accelerator& accelerator, const GroupedTable& table,
                         const GemmFit& dense) {
  const GroupedCalls fitted = fit_free(GroupedCalls{}, free_in_groups(), [&](const auto& trial) {
    return log_ratios(trial, accelerator, dense, table.calls);
  });
  return {fitted.products, fit_error(log_ratios(fitted, accelerator, dense, table.calls)),
          fit_error(log_ratios(fitted, accelerator, dense, table.held_out))};
}

}  // namespace stepcast
