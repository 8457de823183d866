// SPDX-License-Identifier: Apache-2.0
// Whether a longer search of an offer can change which offer stands first.
#pragma once

#include <vector>

#include "plan/offers/offer_ranking.h"

namespace stepcast {

struct OfferChance {
  bool may_win = true;          // the first place, or one of the answers that have a name
  bool may_clearly_win = true;  // by more than kNearTie
  double value = 0;             // of the objective: no layout of the offer has less
  double behind = 0;            // the fraction by which that is more than the first place has
};

// The chance of an offer whose search is not done, by the bound of its layouts. An offer that holds
// a place or an answer may win it, and so may one whose bound is not known.
OfferChance chance_of(const std::vector<Offer>& offers, std::size_t index,
                      const OfferRanking& ranking, Objective objective, const PriceList& prices);

}  // namespace stepcast
