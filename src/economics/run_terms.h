// SPDX-License-Identifier: Apache-2.0
// A run is up against this, whatever the layout: how many tokens, what is rented at which price,
// what fails and what a checkpoint takes. Every default says what it rests on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "economics/hazards.h"
#include "economics/prices.h"
#include "layout/run_settings.h"

namespace stepcast {

struct Scenario;

// A value that the scenario does not give.
struct Assumption {
  std::string key;    // that would give it: "run.restart"
  std::string value;  // "10 min"
  std::string basis;  // its source
};

struct RunTerms {
  std::optional<double> tokens;  // to train
  double tokens_per_step = 0;
  std::int64_t gpus = 0;         // that train
  std::int64_t rented_gpus = 0;  // as many as are let together, spare nodes too
  std::int64_t spare_gpus = 0;   // some of the rented ones
  std::int64_t rented_together = 0;
  Seconds least_rental;  // that is billed
  std::optional<double> dollars_per_gpu_hour;
  std::string no_price;  // why there is none
  Hazards hazards;
  Bytes checkpoint;                            // its size
  std::optional<Seconds> checkpoint_interval;  // absent: the best
  Watts power;  // of all training GPUs at their limit, in a building of `pue`; 0: not known
  BesideSettings beside;
  std::optional<Seconds> deadline;
  std::optional<double> budget;  // dollars
  std::vector<Assumption> assumptions;
};

// A scenario without `run` is treated as one with an empty `run`.
RunTerms run_terms(const Scenario& scenario, const PriceList& prices);

}  // namespace stepcast
