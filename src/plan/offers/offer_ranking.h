// SPDX-License-Identifier: Apache-2.0
// Offers in order, and the answers that have a name.
#pragma once

#include <optional>
#include <vector>

#include "plan/offers/offer.h"

namespace stepcast {

// Both hold for a limit that is not stated, and for a budget where no price is known.
bool meets_limits(const OfferLayout& layout);

struct OfferRanking {
  // Indices of the offers with a layout: first those within all stated limits, then by the
  // objective, then by step time, then as they were asked for.
  std::vector<std::size_t> order;
  std::vector<std::size_t> others;  // without a layout, as they were asked for
  // Fastest: the least wall time, interruptions included. Absent: no offer has a price, or none is
  // within the limit, or there is no limit.
  std::optional<std::size_t> cheapest, fastest, cheapest_within_deadline, fastest_within_budget;
};

OfferRanking rank_offers(const std::vector<Offer>& offers, Objective objective);

}  // namespace stepcast
