// SPDX-License-Identifier: Apache-2.0
// Turns the time of a step into days, dollars and energy of a run. A pure function, cheap enough to
// rank the candidates of a search by cost or goodput (a few microseconds each).
#pragma once

#include <optional>

#include "economics/beside_training.h"
#include "economics/run_terms.h"

namespace stepcast {

struct Scenario;

struct StepTime {
  Seconds time, low, high;  // median; central 90 %
};

// A figure with the ends of its central 90 %.
struct FigureRange {
  double value = 0, low = 0, high = 0;
};

// Time, money and energy that a run of so many tokens takes.
struct RunLength {
  double steps = 0;
  Seconds training;    // its steps alone
  std::vector<TimeBeside> beside;
  FigureRange wall_s;  // with everything that interrupts them, and all that stands beside them
  double interruptions = 0;
  double gpu_hours = 0;       // rented and billed
  bool least_billed = false;  // the run is shorter than what is billed at least
  std::optional<FigureRange> dollars;
  std::optional<Joules> energy;
  std::optional<bool> meets_deadline, within_budget;
  std::optional<double> deadline_chance, budget_chance;  // by the intervals
};

struct RunForecast {
  FigureRange goodput;  // share of wall time in steps that count, at full speed
  WallShares shares;
  std::optional<Seconds> between_interruptions;  // mean; absent: there are none
  // The training time between two checkpoints: the one used, Young's and Daly's. Absent when there
  // are no interruptions.
  std::optional<Seconds> interval, young, daly;
  std::int64_t spares_needed = 0;                    // to wait for nodes at most 1 % of the time
  std::optional<double> dollars_per_million_tokens;  // absent when no goodput is left
  std::optional<RunLength> length;  // when the tokens are given and some goodput is left
};

// The interval of goodput covers the chance of interruptions over the run (over 30 days when its
// length is not given); that of wall time the interval of the step too. Rates are taken as given.
RunForecast forecast_run(const RunTerms& terms, const StepTime& step);

// The hazards that a run meets, and the forecast that follows.
struct RunOutlook {
  RunTerms terms;
  RunForecast forecast;
};
RunOutlook run_outlook(const Scenario& scenario, const PriceList& prices, const StepTime& step);

}  // namespace stepcast
