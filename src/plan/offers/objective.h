// SPDX-License-Identifier: Apache-2.0
// A plan is ranked by one of these. All three grow with the step time of a layout, where nothing
// else changes; less is better.
#pragma once

#include <string>
#include <vector>

#include "economics/run_forecast.h"
#include "predict/prediction.h"

namespace stepcast {

struct Scenario;

enum class Objective {
  kStepTime,
  kCost,     // dollars of the tokens, or per million of them when no number of tokens is given
  kGoodput,  // tokens per second of wall time, interruptions included: its inverse
};

// "step_time", "cost", "goodput".
const std::vector<std::string>& objective_names();
Objective objective_of(const std::string& name);  // one of the names
const char* name_of(Objective objective);

inline StepTime step_time_of(const Prediction& prediction) {
  return {prediction.step_time, prediction.step_time_low, prediction.step_time_high};
}

// Ranks a layout with this step time: the least is best. It is infinite without a price or
// without goodput.
double objective_value(Objective objective, Seconds step, const RunForecast& run);

// Whether the objective can be answered. Errors: `cost` where no scenario has a price.
Errors check_prices(const std::vector<const Scenario*>& scenarios, Objective objective,
                    const PriceList& prices);

// Seconds of wall time for one step's tokens; infinite without goodput.
double wall_s_per_step(Seconds step, const RunForecast& run);
// Dollars, of the tokens or per million; infinite without a price.
double cost_of(const RunForecast& run);

}  // namespace stepcast
