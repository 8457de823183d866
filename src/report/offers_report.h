// SPDX-License-Identifier: Apache-2.0
// The outcome of `plan` across clusters and sizes, in every format (docs/plan.md).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/text/written.h"
#include "plan/offers/offer_ranking.h"
#include "plan/offers/pareto_points.h"

namespace stepcast {

struct OffersReport {
  const std::vector<Offer>& offers;
  OfferRanking ranking;
  Objective objective;
  std::vector<ParetoPoint> pareto;
  std::size_t top;           // places to print
  bool shows_front = false;  // tables have it too
};

Written offers_table(const OffersReport& report);
Written offers_markdown(const OffersReport& report);
Written offers_csv(const OffersReport& report);
Written offers_json(const OffersReport& report);
Written offers_html(const OffersReport& report);

// The report must have a place.
const Offer& first_of(const OffersReport& report);
bool has_length(const OffersReport& report);  // the tokens of the run are given

std::string offers_headline(const OffersReport& report);  // what all offers have in common
bool ended_early(const OffersReport& report);             // a search of it, before it was done
bool was_cut_off(const OffersReport& report);  // before it knew of every offer whether one fits
// The decision in a sentence: "Rent 512 GPUs of gb200-nvl72: 18.6 days, $1.04M; against the next
// place 31 % cheaper." Empty where nothing has a place.
std::string offers_decision(const OffersReport& report);
std::string offers_verdict(const OffersReport& report);  // whether the places are certain
// Three lines: what to rent, what it takes with its range, and what may go wrong. The report must
// have a place.
std::vector<std::string> closing_lines(const OffersReport& report);
// The named answers in words, and which limits no offer meets.
std::vector<std::string> answer_lines(const OffersReport& report);
// How a place differs from the first: "1.9x faster, 1.2 times the cost; misses the deadline of 30.0
// days".
std::string offer_reason(const OffersReport& report, const Offer& offer);
// Why an offer has no place.
std::string no_place_reason(const Offer& offer);
// "128", or "12 of 16" where whole nodes are rented for fewer.
std::string gpus_text(const Offer& offer);
std::string gpus_noun(const Offer& offer);  // "128 GPUs"

// The named answers, as "cheapest within the deadline", with the offer; absent ones left out.
struct NamedAnswer {
  const char* key;   // "cheapest_within_deadline"
  std::string text;  // "the cheapest within the deadline of 30.0 days"
  std::size_t offer;
};
std::vector<NamedAnswer> named_answers(const OffersReport& report);
// Returns its place, counted from 1.
std::size_t place_of(const OffersReport& report, std::size_t offer);

struct OfferTotals {
  double combinations = 0, differing = 0, cut_by_memory = 0, cut_by_time = 0;
  std::int64_t subtrees = 0, bounded = 0, replayed = 0;
  bool proven = true;  // the layout of every offer is certain, or cannot win
};
OfferTotals totals_of(const OffersReport& report);

}  // namespace stepcast
