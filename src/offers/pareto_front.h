// SPDX-License-Identifier: Apache-2.0
// What is best in one regard or another: the layouts to which none is better in time, memory, GPUs
// and money at once.
#pragma once

#include <optional>
#include <vector>

#include "offers/offer.h"

namespace stepcast {

struct ParetoFigures {
  double step_s = 0;
  double device_bytes = 0;
  double gpus = 0;
  std::optional<double> dollars;  // of the run or of a million tokens; absent: no price
};

// At least as good in all regards and better in one. A figure with a price and one without do not
// compare.
bool dominates(const ParetoFigures& one, const ParetoFigures& other);

// Indices of those that nothing dominates, by step time; of equal ones the first.
std::vector<std::size_t> pareto_front(const std::vector<ParetoFigures>& figures);

struct ParetoPoint {
  std::size_t offer;  // index
  const OfferLayout* layout;
};
// Of the best layouts of all offers and their fronts of time and memory.
std::vector<ParetoPoint> pareto_points(const std::vector<Offer>& offers);

}  // namespace stepcast
