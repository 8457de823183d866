// SPDX-License-Identifier: Apache-2.0
#include "offers/pareto_front.h"

#include <algorithm>
#include <cmath>

namespace stepcast {
namespace {

ParetoFigures figures_of(const Offer& offer, const OfferLayout& layout) {
  const double dollars = cost_of(layout.run.forecast);
  return {layout.found.prediction.step_time.value(),
          static_cast<double>(layout.found.prediction.peak_device),
          static_cast<double>(offer.gpus()),
          std::isfinite(dollars) ? std::optional(dollars) : std::nullopt};
}

bool equal(const ParetoFigures& one, const ParetoFigures& other) {
  return one.step_s == other.step_s && one.device_bytes == other.device_bytes &&
         one.gpus == other.gpus && one.dollars == other.dollars;
}

}  // namespace

bool dominates(const ParetoFigures& one, const ParetoFigures& other) {
  if (one.dollars.has_value() != other.dollars.has_value()) return false;
  const bool no_worse = one.step_s <= other.step_s && one.device_bytes <= other.device_bytes &&
                        one.gpus <= other.gpus &&
                        one.dollars.value_or(0) <= other.dollars.value_or(0);
  return no_worse && !equal(one, other);
}

std::vector<std::size_t> pareto_front(const std::vector<ParetoFigures>& figures) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    bool stays = true;
    for (std::size_t j = 0; j < figures.size() && stays; ++j) {
      stays = !dominates(figures[j], figures[i]) && !(j < i && equal(figures[j], figures[i]));
    }
    if (stays) out.push_back(i);
  }
  std::stable_sort(out.begin(), out.end(), [&](std::size_t a, std::size_t b) {
    return figures[a].step_s < figures[b].step_s;
  });
  return out;
}

std::vector<ParetoPoint> pareto_points(const std::vector<Offer>& offers) {
  std::vector<ParetoPoint> points;
  std::vector<ParetoFigures> figures;
  for (std::size_t i = 0; i < offers.size(); ++i) {
    const auto add = [&](const OfferLayout& layout) {
      points.push_back({i, &layout});
      figures.push_back(figures_of(offers[i], layout));
    };
    if (offers[i].best) add(*offers[i].best);
    for (const OfferLayout& layout : offers[i].front) add(layout);
  }
  std::vector<ParetoPoint> out;
  for (const std::size_t i : pareto_front(figures)) out.push_back(points[i]);
  return out;
}

}  // namespace stepcast
