// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/demands.h"

#include <fmt/format.h>

#include <limits>

#include "layout/run_settings.h"
#include "layout/scenario.h"

namespace stepcast {

Demands demands_of(const Scenario& scenario, double memory_margin,
                   std::optional<double> tokens_per_s) {
  const RunSettings run = scenario.run.value_or(RunSettings{});
  return {memory_margin, tokens_per_s, run.tokens, run.deadline, run.budget};
}

Errors check_demands(const Demands& demands, const Scenario& scenario, const PriceList& prices) {
  if (!demands.budget) return {};
  const RunTerms terms = run_terms(scenario, prices);
  if (terms.dollars_per_gpu_hour) return {};
  return {{ErrorCode::kMissingKey, fmt::format("is missing: {}", terms.no_price), "",
           "run.price_per_gpu_hour", "as --price 2.5"}};
}

const char* name_of(Constraint constraint) {
  switch (constraint) {
    case Constraint::kMemory:
      return "memory";
    case Constraint::kThroughput:
      return "throughput";
    case Constraint::kDeadline:
      return "deadline";
    case Constraint::kBudget:
      return "budget";
  }
  return "";
}

std::vector<Shortfall> shortfalls_of(const Demands& demands, const Prediction& prediction,
                                     const RunForecast& run) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<Shortfall> out;
  if (demands.tokens_per_s && prediction.tokens_per_s < *demands.tokens_per_s) {
    out.push_back({Constraint::kThroughput, prediction.tokens_per_s, *demands.tokens_per_s});
  }
  const bool ends = run.length.has_value();
  if (demands.deadline && !(ends && run.length->meets_deadline.value_or(false))) {
    out.push_back({Constraint::kDeadline, ends ? run.length->wall_s.value : kNever,
                   demands.deadline->value()});
  }
  if (demands.budget && !(ends && run.length->within_budget.value_or(false))) {
    const bool priced = ends && run.length->dollars;
    out.push_back(
        {Constraint::kBudget, priced ? run.length->dollars->value : kNever, *demands.budget});
  }
  return out;
}

}  // namespace stepcast
