// SPDX-License-Identifier: Apache-2.0
// Asks for one model on each offer: a first answer each, and then a search to its end where the
// offer may still win. They follow one another, so that what is found depends on no thread.
#pragma once

#include <functional>

#include "core/json_fwd.h"
#include "plan/offers/offer.h"
#include "plan/search.h"

namespace stepcast {

struct OfferSearch {
  Objective objective = Objective::kStepTime;
  SearchOptions layouts;  // its time limit is of the whole: a search gets its part of what is left
  std::function<void(std::size_t done, const Offer&)> begins;  // before each search
};

// Every offer made ready: its space and its prices. An offer that the rules refuse is kept with its
// errors. Errors: what is wrong with the scenario or a cluster, and what the rules say when they
// refuse every offer. `file` is what they name.
Result<std::vector<Offer>> make_offers(const SortedJson& scenario, const std::string& file,
                                       const std::vector<OfferRequest>& requests,
                                       const DataFolders& folders);

// Every offer is searched to its end when the search is to prove its places, or wants a front.
// Errors: as above, when the rules leave no layout of any offer.
Errors search_offers(const OfferSearch& search, const PriceList& prices,
                     std::vector<Offer>& offers);

}  // namespace stepcast
