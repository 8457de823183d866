// SPDX-License-Identifier: Apache-2.0
// How little memory a layout needs where nothing fits, by forecasts in place of bounds.
#pragma once

#include <optional>

#include "core/result.h"
#include "plan/layout_choice.h"
#include "predict/prediction.h"

namespace stepcast {

class Planner;
struct SearchOptions;

struct LayoutForecast {
  LayoutChoice choice;
  Prediction prediction;
};

// Searches for a layout that needs little memory among those that differ from `start` in keys of
// few values: bounds on memory are looser where parameters are gathered or transfers overlap. Gives
// nothing when the time is over before one is replayed. Errors: those of its first forecast.
Result<std::optional<LayoutForecast>> most_frugal(const Planner& planner, const LayoutChoice& start,
                                                  const SearchOptions& search);

}  // namespace stepcast
