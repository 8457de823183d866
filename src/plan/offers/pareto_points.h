// SPDX-License-Identifier: Apache-2.0
// The Pareto front: the layouts to which no other is at least as good in time, memory, GPUs and
// money and better in one of them.
#pragma once

#include <optional>
#include <vector>

#include "plan/offers/offer.h"

namespace stepcast {

struct ParetoFigures {
  double step_s = 0;
  double device_bytes = 0;
  double gpus = 0;
  std::optional<double> dollars;  // of the run or of a million tokens; absent: no price
};

// Indices of those on the Pareto front, by step time; where several are equal, the first. A layout
// with a price and one without are not compared.
std::vector<std::size_t> pareto_front(const std::vector<ParetoFigures>& figures);

struct ParetoPoint {
  std::size_t offer;  // index
  const OfferLayout* layout;
};
// The front over the best layouts of all offers and their own fronts of time and memory.
std::vector<ParetoPoint> pareto_points(const std::vector<Offer>& offers);

}  // namespace stepcast
