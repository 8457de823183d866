// SPDX-License-Identifier: Apache-2.0
#include "plan/offers/objective.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "layout/scenario.h"

namespace stepcast {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

}  // namespace

const std::vector<std::string>& objective_names() {
  static const std::vector<std::string> names = {"step_time", "cost", "goodput"};
  return names;
}

Objective objective_of(const std::string& name) {
  const auto& names = objective_names();
  return static_cast<Objective>(std::find(names.begin(), names.end(), name) - names.begin());
}

const char* name_of(Objective objective) {
  return objective_names()[static_cast<std::size_t>(objective)].c_str();
}

double wall_s_per_step(Seconds step, const RunForecast& run) {
  return run.goodput.value > 0 ? step.value() / run.goodput.value : kNone;
}

double cost_of(const RunForecast& run) {
  if (run.length && run.length->dollars) return run.length->dollars->value;
  return run.dollars_per_million_tokens.value_or(kNone);
}

double objective_value(Objective objective, Seconds step, const RunForecast& run) {
  switch (objective) {
    case Objective::kStepTime:
      return step.value();
    case Objective::kCost:
      return cost_of(run);
    case Objective::kGoodput:
      return wall_s_per_step(step, run);
  }
  return kNone;
}

Errors check_prices(const std::vector<const Scenario*>& scenarios, Objective objective,
                    const PriceList& prices) {
  std::vector<std::string> unpriced;
  bool priced = false;
  for (const Scenario* scenario : scenarios) {
    const std::string& name = scenario->cluster.spec.name;
    if (run_terms(*scenario, prices).dollars_per_gpu_hour) {
      priced = true;
    } else if (std::find(unpriced.begin(), unpriced.end(), name) == unpriced.end()) {
      unpriced.push_back(name);
    }
  }
  if (objective != Objective::kCost || priced) return {};
  return {
      {ErrorCode::kMissingKey,
       fmt::format("the objective cost needs a price, and none is listed for {}", one_of(unpriced)),
       "", "run.price_per_gpu_hour", "--price DOLLARS"}};
}

}  // namespace stepcast
