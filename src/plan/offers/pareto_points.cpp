// SPDX-License-Identifier: Apache-2.0
#include "plan/offers/pareto_points.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/pareto_front.h"

namespace stepcast {
namespace {

ParetoFigures figures_of(const Offer& offer, const OfferLayout& layout) {
  const double dollars = cost_of(layout.run.forecast);
  return {layout.found.prediction.step_time.value(),
          static_cast<double>(layout.found.prediction.peak_device),
          static_cast<double>(offer.gpus()),
          std::isfinite(dollars) ? std::optional(dollars) : std::nullopt};
}

}  // namespace

std::vector<std::size_t> pareto_front(const std::vector<ParetoFigures>& figures) {
  std::vector<std::size_t> out;
  for (const bool priced : {true, false}) {
    std::vector<std::size_t> alike;
    std::vector<std::vector<double>> points;
    for (std::size_t i = 0; i < figures.size(); ++i) {
      const ParetoFigures& one = figures[i];
      if (one.dollars.has_value() != priced) continue;
      alike.push_back(i);
      points.push_back({one.step_s, one.device_bytes, one.gpus, one.dollars.value_or(0)});
    }
    for (const std::size_t i : pareto_front(points)) out.push_back(alike[i]);
  }
  std::sort(out.begin(), out.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(figures[a].step_s, a) < std::pair(figures[b].step_s, b);
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
