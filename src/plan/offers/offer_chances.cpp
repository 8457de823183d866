// SPDX-License-Identifier: Apache-2.0
#include "plan/offers/offer_chances.h"

#include <algorithm>
#include <limits>

namespace stepcast {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// An offer at its bound, under the framework that serves it best.
struct Hopes {
  double value = kNever, cost = kNever, wall = kNever;
  bool meets_deadline = false, meets_budget = false;
  bool meets_limits() const { return meets_deadline && meets_budget; }
};

Hopes hopes_of(const Offer& offer, Seconds step, Objective objective, const PriceList& prices) {
  Hopes out;
  for (const Scenario* scenario : offer.planner->frameworks()) {
    const RunOutlook run = run_outlook(*scenario, prices, {step, step, step});
    out.value = std::min(out.value, objective_value(objective, step, run.forecast));
    out.cost = std::min(out.cost, cost_of(run.forecast));
    out.wall = std::min(out.wall, wall_s_per_step(step, run.forecast));
    const auto& length = run.forecast.length;
    const bool ends = length.has_value() || !run.terms.tokens;
    out.meets_deadline |= ends && (!length || length->meets_deadline.value_or(true));
    out.meets_budget |= ends && (!length || length->within_budget.value_or(true));
  }
  return out;
}

double value_of(Objective objective, const OfferLayout& layout) {
  return objective_value(objective, layout.found.prediction.step_time, layout.run.forecast);
}

}  // namespace

OfferChance chance_of(const std::vector<Offer>& offers, std::size_t index,
                      const OfferRanking& ranking, Objective objective, const PriceList& prices) {
  const Offer& offer = offers[index];
  if (!offer.best || ranking.order.empty() || offer.result->bound_s <= 0) return {};
  const double own = offer.best->found.prediction.step_time.value();
  const Hopes hopes =
      hopes_of(offer, Seconds(std::min(own, offer.result->bound_s)), objective, prices);
  const OfferLayout& first = *offers[ranking.order.front()].best;
  const double first_value = value_of(objective, first);
  const auto cost = [](const OfferLayout& layout) { return cost_of(layout.run.forecast); };
  const auto wall = [](const OfferLayout& layout) {
    return wall_s_per_step(layout.found.prediction.step_time, layout.run.forecast);
  };
  const bool limits_differ = hopes.meets_limits() != meets_limits(first);
  // Nobody holds an answer within a limit that is stated and that no offer meets so far.
  const RunTerms& terms = offer.best->run.terms;
  const auto is_open = [](bool stated, const std::optional<std::size_t>& holder) {
    return stated && !holder;
  };
  // By more than this part of what the holder has.
  const auto wins_by = [&](double margin) {
    const double more = 1 + margin;
    const auto beats = [&](const std::optional<std::size_t>& holder, double hope, auto value) {
      return holder && (*holder == index || hope * more < value(*offers[*holder].best));
    };
    const bool leads = limits_differ ? hopes.meets_limits() : hopes.value * more < first_value;
    return ranking.order.front() == index || leads || beats(ranking.cheapest, hopes.cost, cost) ||
           beats(ranking.fastest, hopes.wall, wall) ||
           (hopes.meets_deadline &&
            (is_open(terms.deadline.has_value(), ranking.cheapest_within_deadline) ||
             beats(ranking.cheapest_within_deadline, hopes.cost, cost))) ||
           (hopes.meets_budget &&
            (is_open(terms.budget.has_value(), ranking.fastest_within_budget) ||
             beats(ranking.fastest_within_budget, hopes.wall, wall)));
  };
  return {wins_by(0), wins_by(kNearTie), hopes.value, hopes.value / first_value - 1};
}

}  // namespace stepcast
