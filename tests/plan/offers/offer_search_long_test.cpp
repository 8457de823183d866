// SPDX-License-Identifier: Apache-2.0
#include "plan/offers/offer_search.h"

#include <gtest/gtest.h>

#include "core/each.h"
#include "core/json_tree.h"
#include "plan/offers/offer_ranking.h"
#include "plan/offers/offer_requests.h"
#include "plan/offers/searching.h"

namespace stepcast {
namespace {

SortedJson small_scenario() {
  return SortedJson::parse(R"({"stepcast":1,"model":"gpt3-1.3b",
      "training":{"global_batch":16,"sequence_length":512},
      "layout":{"recompute":"none","zero":1,"order":"tp-cp-ep-dp-pp","sequence_parallel":true,
        "overlap":{"grad_reduce":true,"param_gather":true,"tp":false}},
      "run":{"tokens":1e10}})");
}

std::vector<OfferRequest> small_requests(const std::vector<SortedJson>& clusters,
                                         const std::vector<std::int64_t>& counts) {
  const auto requests = offer_requests(small_scenario(), {clusters, "--clusters", counts, {}},
                                       source_folders().topologies);
  EXPECT_TRUE(requests);
  return requests ? *requests : std::vector<OfferRequest>{};
}

std::vector<Offer> searched(const OfferSearch& search, const std::vector<OfferRequest>& requests) {
  auto offers = make_offers(small_scenario(), "test", requests, source_folders());
  if (!offers) {
    ADD_FAILURE() << to_string(offers.error());
    return {};
  }
  EXPECT_TRUE(search_offers(search, source_prices(), *offers).empty());
  return std::move(*offers);
}

// The table of all offers is what trying every layout on each of them gives.
TEST(OfferSearch, RanksAsTryingEverythingDoes) {
  const auto requests = small_requests({"dgx-h100", "dgx-a100-80g"}, {4, 8});
  ASSERT_EQ(requests.size(), 4u);
  const PriceList prices = source_prices();
  for (const Objective objective : {Objective::kStepTime, Objective::kCost, Objective::kGoodput}) {
    OfferSearch search{objective, {}, {}};
    search.layouts.top = 1;
    search.layouts.prove = true;
    const std::vector<Offer> offers = searched(search, requests);
    ASSERT_EQ(offers.size(), requests.size());
    std::vector<std::pair<double, std::size_t>> expected;
    for (std::size_t i = 0; i < offers.size(); ++i) {
      ASSERT_TRUE(offers[i].best);
      const auto values = all_values(*offers[i].planner, objective, prices);
      ASSERT_FALSE(values.empty());
      expected.emplace_back(values.front(), i);
      const OfferLayout& best = *offers[i].best;
      EXPECT_EQ(objective_value(objective, best.found.prediction.step_time, best.run.forecast),
                values.front());
      EXPECT_TRUE(offers[i].result->proven);
    }
    std::sort(expected.begin(), expected.end());
    const auto order = rank_offers(offers, objective).order;
    for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], expected[i].second);
  }
}

TEST(OfferSearch, GivesTheSameForAnyNumberOfThreads) {
  const auto requests = small_requests({"dgx-h100", "pcie-4090-8"}, {8});
  std::optional<std::vector<Offer>> first;
  for (const int threads : {1, 2, 5}) {
    OfferSearch search{Objective::kCost, {}, {}};
    search.layouts.top = 1;
    search.layouts.front = 3;
    search.layouts.threads = threads;
    std::vector<Offer> offers = searched(search, requests);
    if (!first) {
      first = std::move(offers);
      continue;
    }
    for (std::size_t i = 0; i < offers.size(); ++i) {
      ASSERT_EQ(offers[i].best.has_value(), (*first)[i].best.has_value());
      if (!offers[i].best) continue;
      EXPECT_EQ(offers[i].best->found.choice, (*first)[i].best->found.choice);
      EXPECT_EQ(offers[i].result->replayed, (*first)[i].result->replayed);
      ASSERT_EQ(offers[i].front.size(), (*first)[i].front.size());
      for (std::size_t p = 0; p < offers[i].front.size(); ++p) {
        EXPECT_EQ(offers[i].front[p].found.choice, (*first)[i].front[p].found.choice);
      }
    }
  }
}

double value_of(Objective objective, const Offer& offer) {
  return objective_value(objective, offer.best->found.prediction.step_time,
                         offer.best->run.forecast);
}

// An offer that was left at its first answer is behind by no less than it says.
TEST(OfferSearch, LeavesOffersThatCannotWinAndChangesNoAnswer) {
  const auto requests = small_requests({"dgx-h100", "dgx-a100-80g", "pcie-4090-8"}, {4, 8});
  AtLeast left(1);
  for (const Objective objective : {Objective::kStepTime, Objective::kCost, Objective::kGoodput}) {
    OfferSearch search{objective, {}, {}};
    search.layouts.top = 1;
    const std::vector<Offer> some = searched(search, requests);
    search.layouts.prove = true;
    const std::vector<Offer> all = searched(search, requests);
    const OfferRanking one = rank_offers(some, objective), other = rank_offers(all, objective);
    EXPECT_EQ(one.order.front(), other.order.front());
    EXPECT_EQ(one.cheapest, other.cheapest);
    EXPECT_EQ(one.fastest, other.fastest);
    const double first = value_of(objective, all[other.order.front()]);
    for (std::size_t i = 0; i < some.size(); ++i) {
      ASSERT_EQ(some[i].best.has_value(), all[i].best.has_value());
      EXPECT_FALSE(all[i].behind);
      if (!some[i].behind) continue;
      ++left;
      EXPECT_LE(*some[i].behind, value_of(objective, all[i]) / first - 1);
      EXPECT_FALSE(some[i].result->proven);
    }
  }
}

// Each has its first answer before any is searched further, and keeps it if that is interrupted.
TEST(OfferSearch, AnswersForAllBeforeItSearchesAnyToItsEnd) {
  OfferSearch search{Objective::kStepTime, {}, {}};
  search.layouts.top = 8;  // more than first answers can be certain of
  std::vector<std::size_t> begun;
  search.begins = [&](std::size_t index, const Offer&) { begun.push_back(index); };
  search.layouts.stop = [&] { return begun.size() > 4; };
  const auto offers = searched(search, small_requests({"dgx-h100", "dgx-a100-80g"}, {4, 8}));
  ASSERT_EQ(offers.size(), 4u);
  ASSERT_EQ(begun.size(), 5u);
  for (std::size_t i = 0; i < offers.size(); ++i) {
    EXPECT_EQ(begun[i], i);
    EXPECT_TRUE(offers[i].best);
  }
  EXPECT_TRUE(offers[begun.back()].result->interrupted);
}

TEST(OfferSearch, KeepsAnOfferThatTheRulesRefuse) {
  // Its nodes have no NIC.
  const auto offers =
      searched({Objective::kStepTime, {}, {}}, small_requests({"pcie-4090-8"}, {8, 16}));
  ASSERT_EQ(offers.size(), 2u);
  EXPECT_EQ(offers[0].state, OfferState::kRanked);
  EXPECT_EQ(offers[1].state, OfferState::kRefused);
  ASSERT_FALSE(offers[1].refused.empty());
}

TEST(OfferSearch, SaysWhenNothingFits) {
  SortedJson scenario = small_scenario();
  scenario["model"] = "gpt3-175b";
  const auto requests = small_requests({"dgx-a100-40g"}, {8});
  auto offers = make_offers(scenario, "test", requests, source_folders());
  ASSERT_TRUE(offers);
  EXPECT_TRUE(search_offers({Objective::kStepTime, {}, {}}, source_prices(), *offers).empty());
  EXPECT_EQ(offers->front().state, OfferState::kNothingFits);
  EXPECT_TRUE(offers->front().result->smallest);
}

TEST(OfferSearch, EndsBetweenOffersWhenItIsToldTo) {
  OfferSearch search{Objective::kStepTime, {}, {}};
  bool stop = false;
  search.begins = [&](std::size_t index, const Offer&) { stop = index == 1; };
  search.layouts.stop = [&] { return stop; };
  const auto offers = searched(search, small_requests({"dgx-h100"}, {4, 8, 16}));
  EXPECT_TRUE(offers[0].best);
  EXPECT_EQ(offers[2].state, OfferState::kNotSearched);
  EXPECT_EQ(rank_offers(offers, Objective::kStepTime).others.back(), 2u);
}

TEST(OfferSearch, AnErrorOfTheScenarioOrOfAClusterIsOfAllOffers) {
  SortedJson scenario = small_scenario();
  scenario["training"]["global_batch"] = "many";
  const auto bad =
      make_offers(scenario, "test", small_requests({"dgx-h100"}, {4, 8}), source_folders());
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().size(), 1u) << to_string(bad.error());
  const auto unknown = make_offers(
      small_scenario(), "test", small_requests({"dgx-h100", "dgx-h1000"}, {4}), source_folders());
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().front().path, "--clusters (dgx-h1000)");
}

TEST(OfferSearch, RulesThatRefuseEveryOfferAreAnError) {
  SortedJson scenario = small_scenario();
  scenario["layout"]["tp"] = 3;
  auto offers =
      make_offers(scenario, "test", small_requests({"dgx-h100"}, {4, 8}), source_folders());
  const Errors errors =
      offers ? search_offers({Objective::kStepTime, {}, {}}, source_prices(), *offers)
             : offers.error();
  ASSERT_FALSE(errors.empty());
  EXPECT_EQ(errors.front().path, "layout.tp") << to_string(errors);
}

}  // namespace
}  // namespace stepcast
