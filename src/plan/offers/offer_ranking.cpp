// SPDX-License-Identifier: Apache-2.0
#include "plan/offers/offer_ranking.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>

namespace stepcast {
namespace {

double step_s(const Offer& offer) { return offer.best->found.prediction.step_time.value(); }

// The least finite `value` of those that `counts`; the first of equals.
std::optional<std::size_t> least(const std::vector<Offer>& offers,
                                 const std::vector<std::size_t>& order,
                                 const std::function<double(const Offer&)>& value,
                                 const std::function<bool(const RunForecast&)>& counts) {
  std::optional<std::size_t> out;
  for (const std::size_t i : order) {
    if (!counts(offers[i].best->run.forecast) || !std::isfinite(value(offers[i]))) continue;
    if (!out || value(offers[i]) < value(offers[*out])) out = i;
  }
  return out;
}

}  // namespace

bool meets_limits(const OfferLayout& layout) {
  const RunForecast& run = layout.run.forecast;
  // A run that never ends is within no limit.
  if (!run.length) return !layout.run.terms.tokens;
  return run.length->meets_deadline.value_or(true) && run.length->within_budget.value_or(true);
}

OfferRanking rank_offers(const std::vector<Offer>& offers, Objective objective) {
  OfferRanking out;
  for (std::size_t i = 0; i < offers.size(); ++i) {
    (offers[i].best ? out.order : out.others).push_back(i);
  }
  const auto key = [&](std::size_t i) {
    const OfferLayout& best = *offers[i].best;
    const double value =
        objective_value(objective, best.found.prediction.step_time, best.run.forecast);
    return std::tuple(!meets_limits(best), value, step_s(offers[i]), i);
  };
  std::sort(out.order.begin(), out.order.end(),
            [&](std::size_t a, std::size_t b) { return key(a) < key(b); });

  const auto any = [](const RunForecast&) { return true; };
  const auto cost = [](const Offer& offer) { return cost_of(offer.best->run.forecast); };
  const auto wall = [](const Offer& offer) {
    const OfferLayout& best = *offer.best;
    return wall_s_per_step(best.found.prediction.step_time, best.run.forecast);
  };
  out.cheapest = least(offers, out.order, cost, any);
  out.fastest = least(offers, out.order, wall, any);
  out.cheapest_within_deadline = least(offers, out.order, cost, [](const RunForecast& run) {
    return run.length && run.length->meets_deadline.value_or(false);
  });
  out.fastest_within_budget = least(offers, out.order, wall, [](const RunForecast& run) {
    return run.length && run.length->within_budget.value_or(false);
  });
  return out;
}

}  // namespace stepcast
