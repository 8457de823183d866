// SPDX-License-Identifier: Apache-2.0
#include "plan/offers/offer_ranking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/seeded_random.h"

namespace stepcast {
namespace {

// A run that is never interrupted: its wall time is its steps.
struct Made {
  double step_s;
  std::int64_t gpus;
  std::optional<double> price;
};

constexpr double kTokensPerStep = 1e6;

Offer offer_of(const Made& made, std::optional<double> tokens = {},
               std::optional<Seconds> deadline = {}, std::optional<double> budget = {},
               double failures_per_s = 0) {
  Offer out;
  out.request.gpus = made.gpus;
  out.state = OfferState::kRanked;
  OfferLayout layout;
  Prediction& prediction = layout.found.prediction;
  prediction.step_time = prediction.step_time_low = prediction.step_time_high =
      Seconds(made.step_s);
  RunTerms& terms = layout.run.terms;
  terms.tokens = tokens;
  terms.tokens_per_step = kTokensPerStep;
  terms.gpus = terms.rented_gpus = made.gpus;
  terms.dollars_per_gpu_hour = made.price;
  terms.deadline = deadline;
  terms.budget = budget;
  terms.hazards.process.failures = PerSecond(failures_per_s);
  terms.hazards.process.checkpoint = Seconds(30);
  terms.hazards.process.restart = Seconds(300);
  layout.run.forecast = forecast_run(terms, step_time_of(prediction));
  out.best = std::move(layout);
  return out;
}

std::vector<Offer> offers_of(const std::vector<Made>& made, std::optional<double> tokens = {},
                             std::optional<Seconds> deadline = {},
                             std::optional<double> budget = {}) {
  std::vector<Offer> out;
  for (const Made& one : made) out.push_back(offer_of(one, tokens, deadline, budget));
  return out;
}

using Order = std::vector<std::size_t>;

// Dollars are price times GPUs times time over goodput, whatever else the run is made of.
TEST(OfferRanking, CostIsPriceTimesGpusTimesTimeOverGoodput) {
  SeededRandom random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<Offer> offers;
    for (int i = 0; i < 8; ++i) {
      const Made made{1 + 20 * random.uniform(), 8 << (i % 4), 1 + 5 * random.uniform()};
      offers.push_back(offer_of(made, {}, {}, {}, 1e-4 * random.uniform()));
    }
    std::vector<double> costs;
    for (const Offer& offer : offers) {
      const RunOutlook& run = offer.best->run;
      costs.push_back(*run.terms.dollars_per_gpu_hour * static_cast<double>(run.terms.gpus) *
                      offer.best->found.prediction.step_time.value() / run.forecast.goodput.value);
    }
    const Order order = rank_offers(offers, Objective::kCost).order;
    EXPECT_TRUE(std::ranges::is_sorted(
        order, [&](std::size_t a, std::size_t b) { return costs[a] < costs[b]; }));
  }
}

TEST(OfferRanking, OrdersByEachObjective) {
  // Faster and dearer from the first to the last.
  const auto offers = offers_of({{8, 8, 1.0}, {4, 16, 1.5}, {2, 32, 2.0}});
  EXPECT_EQ(rank_offers(offers, Objective::kStepTime).order, (Order{2, 1, 0}));
  EXPECT_EQ(rank_offers(offers, Objective::kGoodput).order, (Order{2, 1, 0}));
  EXPECT_EQ(rank_offers(offers, Objective::kCost).order, (Order{0, 1, 2}));
}

// Interruptions grow with the nodes: the step that is faster need not be the run that is.
TEST(OfferRanking, GoodputCountsInterruptions) {
  std::vector<Offer> offers;
  offers.push_back(offer_of({1.0, 8, {}}, {}, {}, {}, 5e-3));
  offers.push_back(offer_of({1.1, 8, {}}));
  EXPECT_EQ(rank_offers(offers, Objective::kStepTime).order, (Order{0, 1}));
  EXPECT_EQ(rank_offers(offers, Objective::kGoodput).order, (Order{1, 0}));
  EXPECT_EQ(rank_offers(offers, Objective::kGoodput).fastest, 1u);
}

TEST(OfferRanking, AnOfferWithoutAPriceIsNotCheap) {
  const auto offers = offers_of({{1, 8, {}}, {4, 16, 1.5}});
  const OfferRanking ranking = rank_offers(offers, Objective::kCost);
  EXPECT_EQ(ranking.order, (Order{1, 0}));
  EXPECT_EQ(ranking.cheapest, 1u);
  EXPECT_EQ(ranking.fastest, 0u);
}

TEST(OfferRanking, NamesTheAnswersWithinLimits) {
  // 1000 steps of 3600 s on one GPU of 1 dollar are 1000 hours and 1000 dollars.
  const double tokens = 1000 * kTokensPerStep;
  const Seconds deadline(600 * 3600.0);
  const auto offers =
      offers_of({{3600, 1, 1.0}, {1800, 2, 1.5}, {900, 4, 2.0}}, tokens, deadline, 1500);
  const OfferRanking ranking = rank_offers(offers, Objective::kCost);
  EXPECT_EQ(ranking.cheapest, 0u);                  // 1000 dollars, and too late
  EXPECT_EQ(ranking.fastest, 2u);                   // 2000 dollars
  EXPECT_EQ(ranking.cheapest_within_deadline, 1u);  // 500 hours, 1500 dollars
  EXPECT_EQ(ranking.fastest_within_budget, 1u);
  EXPECT_EQ(ranking.order, (Order{1, 0, 2}));  // what meets all limits stands first
}

TEST(OfferRanking, SaysWhenNothingIsWithinALimit) {
  const auto offers =
      offers_of({{3600, 1, 1.0}}, 1000 * kTokensPerStep, Seconds(3600.0), std::optional(1.0));
  const OfferRanking ranking = rank_offers(offers, Objective::kCost);
  EXPECT_FALSE(ranking.cheapest_within_deadline);
  EXPECT_FALSE(ranking.fastest_within_budget);
  EXPECT_EQ(ranking.order, (Order{0}));
}

TEST(OfferRanking, KeepsOffersWithoutALayoutApart) {
  std::vector<Offer> offers = offers_of({{1, 8, 1.0}});
  offers.emplace_back();
  const OfferRanking ranking = rank_offers(offers, Objective::kStepTime);
  EXPECT_EQ(ranking.order, (Order{0}));
  EXPECT_EQ(ranking.others, (Order{1}));
}

}  // namespace
}  // namespace stepcast
