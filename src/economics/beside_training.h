// SPDX-License-Identifier: Apache-2.0
// A budget pays for more than the steps of pre-training.
#pragma once

#include <string>
#include <vector>

#include "core/quantity.h"

namespace stepcast {

struct BesideSettings;

// A part of the wall time that no step of pre-training takes.
struct TimeBeside {
  const char* key;    // "bring_up": of run.beside, and with "_s" of the JSON
  const char* label;  // "bring-up"
  Seconds wall;
  bool is_fixed;  // however long training takes
};

// The parts that are stated, of a run whose `tokens` take `training` of wall time.
std::vector<TimeBeside> times_beside(const BesideSettings& beside, double tokens, Seconds training);

// Whole runs took so many times the GPU-hours of their pre-training steps: by their publishers, or
// by the steps as this program forecasts them. Sources are in docs/economics.md.
inline constexpr double kLeastOfWholeRuns = 1.05, kMostOfWholeRuns = 2.6;
// Theirs were of trillions of tokens; short runs and fine-tuning are not like them.
inline constexpr double kTokensOfWholeRuns = 1e11;

}  // namespace stepcast
