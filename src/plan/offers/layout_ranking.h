// SPDX-License-Identifier: Apache-2.0
// A search of layouts by any objective. The search itself is by step time; the others grow with it
// for each framework, and differ between frameworks by the size of a checkpoint only.
#pragma once

#include <optional>

#include "economics/prices.h"
#include "plan/offers/objective.h"

namespace stepcast {

class Planner;
struct FoundLayout;
struct Scenario;
struct SearchOptions;
struct SearchResult;

// The forecast of the whole run, if the scenario says something about it.
Result<std::optional<RunOutlook>> outlook_of(const Scenario& scenario, const Prediction& prediction,
                                             const PriceFiles& price_files);
RunOutlook outlook_of(const Planner& planner, const PriceList& prices, const FoundLayout& found);

// Searches as Planner::search does, but `found` and `proven` follow the objective: when places by
// step time do not make places by the objective certain, more of them are searched.
Result<SearchResult> search_by(Objective objective, const Planner& planner, const PriceList& prices,
                               SearchOptions options);

}  // namespace stepcast
