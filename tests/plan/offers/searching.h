// SPDX-License-Identifier: Apache-2.0
// Small spaces of layouts, everything in them tried.
#pragma once

#include "layout/scenario.h"
#include "places.h"
#include "plan/offers/offer_search.h"
#include "plan/planning.h"
#include "plan/ranking.h"

namespace stepcast {

inline PriceList source_prices() {
  const auto prices = load_prices({source_folder() + "/prices"});
  EXPECT_TRUE(prices);
  return prices ? *prices : PriceList{};
}

// The objective's values of all layouts of the space that fit, by place.
inline std::vector<double> all_values(const Planner& planner, Objective objective,
                                      const PriceList& prices) {
  std::vector<double> values, out;
  std::vector<Simplicity> simplicities;
  Scenario scratch = planner.space().base();
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
    values.push_back(objective_value(objective, forecast->step_time, run));
    simplicities.push_back(simplicity(planner.space(), choice, forecast->peak_device, scratch));
  }
  for (const std::size_t i : order_of_places(values, simplicities)) out.push_back(values[i]);
  return out;
}

}  // namespace stepcast
