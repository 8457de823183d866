// SPDX-License-Identifier: Apache-2.0
// Small spaces of layouts, everything in them tried.
#pragma once

#include <nlohmann/json.hpp>

#include "plan/offers/offer_search.h"
#include "plan/planning.h"

namespace stepcast {

inline PriceList source_prices() {
  const auto prices = load_prices(std::string(STEPCAST_SOURCE_DIR) + "/prices");
  EXPECT_TRUE(prices);
  return prices ? *prices : PriceList{};
}

// The objective's values of all layouts of the space that fit, ascending.
inline std::vector<double> all_values(const Planner& planner, Objective objective,
                                      const PriceList& prices) {
  std::vector<double> out;
  for (const LayoutChoice& choice : all_layouts(planner.space())) {
    const auto forecast = planner.predict(choice);
    if (!forecast) {
      ADD_FAILURE() << to_string(forecast.error());
      continue;
    }
    if (!forecast->fits) continue;
    Scenario scenario = planner.space().base();
    planner.space().put(choice, scenario);
    RunTerms terms = run_terms(scenario, prices);
    const RunForecast run = forecast_run(terms, step_time_of(*forecast));
    out.push_back(objective_value(objective, forecast->step_time, run));
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace stepcast
