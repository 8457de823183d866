// SPDX-License-Identifier: Apache-2.0
// An advice has to meet these: memory always, speed and money where the user asks for them.
#pragma once

#include <optional>
#include <vector>

#include "economics/run_forecast.h"
#include "plan/search.h"

namespace stepcast {

struct Demands {
  double memory_margin = kMemoryMargin;  // of the device's memory, left free
  std::optional<double> tokens_per_s;    // of all GPUs while they train
  std::optional<double> tokens;          // of the run
  std::optional<Seconds> deadline;
  std::optional<double> budget;  // dollars

  // Advising one GPU of many answers only a user who says what is fast enough.
  bool of_speed() const { return tokens_per_s || deadline; }
};

// Takes deadline and budget from the scenario's `run`; the other two demands are limits of the
// search.
Demands demands_of(const Scenario& scenario, double memory_margin,
                   std::optional<double> tokens_per_s);

// Demands that no forecast could answer: a budget without a price.
Errors check_demands(const Demands& demands, const Scenario& scenario, const PriceList& prices);

enum class Constraint { kMemory, kThroughput, kDeadline, kBudget };
const char* name_of(Constraint constraint);  // "memory"

// A demand that is not met. Bytes of one GPU, tokens/s, seconds or dollars; `value` is infinite
// for a run that never ends.
struct Shortfall {
  Constraint constraint;
  double value, limit;
};

// Lists what a layout that fits falls short of. The middle of a run's interval decides.
std::vector<Shortfall> shortfalls_of(const Demands& demands, const Prediction& prediction,
                                     const RunForecast& run);

}  // namespace stepcast
