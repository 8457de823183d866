// SPDX-License-Identifier: Apache-2.0
// One cluster of one size, and the best layout of the model on it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "plan/offers/layout_ranking.h"
#include "plan/planner.h"
#include "plan/search_result.h"

namespace stepcast {

// The cluster and size to search.
struct OfferRequest {
  std::string cluster;        // JSON: the object `cluster` of the scenario, its size included
  std::string label;          // "dgx-h100", with the keys that it overrides
  std::string source;         // what names it: "--clusters", "plan.clusters"; for errors
  std::int64_t gpus = 0;      // as asked; 0: as many as the cluster has
  std::string scenario = {};  // JSON: in place of the common one, where keys are varied
};

struct OfferLayout {
  FoundLayout found;
  RunOutlook run;
};

// Whether a layout of it was found, and if not, why.
enum class OfferState {
  kRanked,
  kNothingFits,
  kNotFound,     // the search ended before it had found one
  kRefused,      // no layout is legal, or none is modelled
  kNotSearched,  // the time was over
};

struct Offer {
  OfferRequest request;
  OfferState state = OfferState::kNotSearched;
  std::unique_ptr<Planner> planner;    // absent when the scenario itself is refused
  Errors refused;                      // kRefused: the rules
  std::optional<SearchResult> result;  // its `found` is taken out
  std::optional<OfferLayout> best;     // kRanked
  std::vector<OfferLayout> front;      // of time and memory: what the search was asked for
  // Its search was left at the first answer, because the offer cannot win: even at its bound it is
  // behind the first by this fraction of the value that ranks.
  std::optional<double> behind;

  std::int64_t gpus() const;  // of the cluster
};

}  // namespace stepcast
