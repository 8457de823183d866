// SPDX-License-Identifier: Apache-2.0
#include "plan/offers/offer_search.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/gathered_errors.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "plan/offers/offer_chances.h"

namespace stepcast {
namespace {

// Whether the errors concern this cluster only: another one may accept the same keys.
bool of_the_offer(const Errors& errors) {
  return std::all_of(errors.begin(), errors.end(), [](const Error& error) {
    return error.code == ErrorCode::kIllegal || error.code == ErrorCode::kNotSupported;
  });
}

// Errors about the cluster name the list that it stands in.
Errors name_source(Errors errors, const OfferRequest& request) {
  for (Error& error : errors) {
    if (error.path != "cluster" && !error.path.starts_with("cluster.")) continue;
    if (request.source.empty()) continue;
    error.path = fmt::format("{} ({})", request.source, request.label);
  }
  return errors;
}

OfferState state_of(const SearchResult& result) {
  if (!result.found.empty()) return OfferState::kRanked;
  if (result.is_refused()) return OfferState::kRefused;
  return result.proven ? OfferState::kNothingFits : OfferState::kNotFound;
}

constexpr std::int64_t kFirstReplays = 4;  // of the layouts with the least bounds

// Whether a forecast hardly tells its best from what nothing is faster than.
bool is_close_enough(const Offer& offer) {
  return offer.best && offer.result->bound_s > 0 &&
         offer.best->found.ranked_s <= offer.result->bound_s * (1 + kNearTie);
}

// A longer search that was cut short may know less than the first answer.
bool is_better(const SearchResult& result, const Offer& offer) {
  if (!offer.best || result.proven) return true;
  return !result.found.empty() &&
         result.found.front().prediction.step_time <= offer.best->found.prediction.step_time;
}

void take(SearchResult result, const PriceList& prices, Offer& offer) {
  if (!is_better(result, offer)) {
    offer.result->interrupted = result.interrupted;
    offer.result->bound_s = std::max(offer.result->bound_s, result.bound_s);
    return;
  }
  offer.front.clear();
  offer.state = state_of(result);
  const auto with_run = [&](const FoundLayout& found) {
    return OfferLayout{found, outlook_of(*offer.planner, prices, found)};
  };
  if (offer.state == OfferState::kRefused) offer.refused = refusals(result.space);
  if (offer.state == OfferState::kRanked) offer.best = with_run(result.found.front());
  for (const std::size_t index : result.front) offer.front.push_back(with_run(result.found[index]));
  result.found.clear();
  result.front.clear();
  offer.result = std::move(result);
}

}  // namespace

Result<std::vector<Offer>> make_offers(const SortedJson& scenario, const std::string& file,
                                       const std::vector<OfferRequest>& requests,
                                       const DataFolders& folders) {
  std::vector<Offer> out;
  Errors errors, refused;
  for (const OfferRequest& request : requests) {
    SortedJson stated = request.scenario.empty() ? scenario : SortedJson::parse(request.scenario);
    stated["cluster"] = SortedJson::parse(request.cluster);
    const auto document = JsonDocument::from(stated, file);
    auto planner = Planner::make(*document, folders);
    Offer offer;
    offer.request = request;
    if (planner) {
      offer.planner = std::move(*planner);
    } else if (of_the_offer(planner.error())) {
      offer.state = OfferState::kRefused;
      offer.refused = planner.error();
      add_new(planner.error(), refused);
    } else {
      add_new(name_source(planner.error(), request), errors);
    }
    out.push_back(std::move(offer));
  }
  if (!errors.empty()) return failure(std::move(errors));
  const bool any = std::any_of(out.begin(), out.end(),
                               [](const Offer& offer) { return offer.planner != nullptr; });
  if (!any) return failure(std::move(refused));
  return out;
}

namespace {

class OffersSearch {
 public:
  OffersSearch(const OfferSearch& search, const PriceList& prices, std::vector<Offer>& offers)
      : search_(search), prices_(prices), offers_(offers), all_(search.layouts) {
    share_time_limit(all_);
    all_.close_enough = kNearTie;
  }

  Errors answer_all();
  Errors refine();
  bool searches_all_to_the_end() const { return all_.prove || all_.front > 0; }

 private:
  Errors search_one(std::size_t index, SearchOptions options);
  std::vector<std::size_t> worth_searching();

  const OfferSearch& search_;
  const PriceList& prices_;
  std::vector<Offer>& offers_;
  SearchOptions all_;
  std::vector<std::size_t> left_;  // whose search is not done
};

Errors OffersSearch::search_one(std::size_t index, SearchOptions options) {
  Offer& offer = offers_[index];
  if (search_.begins) search_.begins(index, offer);
  auto result = search_by(search_.objective, *offer.planner, prices_, std::move(options));
  if (!result) return result.error();
  take(std::move(*result), prices_, offer);
  return {};
}

Errors OffersSearch::answer_all() {
  SearchOptions first = all_;
  if (!searches_all_to_the_end()) first.replays = std::min(first.replays, kFirstReplays);
  for (std::size_t i = 0; i < offers_.size(); ++i) {
    if (!offers_[i].planner) continue;
    if (is_over(all_)) break;
    if (Errors errors = search_one(i, with_share_of_time(first, offers_.size() - i));
        !errors.empty()) {
      return errors;
    }
    const bool is_done = offers_[i].result->proven || first.replays == all_.replays;
    if (offers_[i].best && !is_done) left_.push_back(i);
  }
  return {};
}

// Lists those of the offers left that are worth a longer search, the least bound first.
std::vector<std::size_t> OffersSearch::worth_searching() {
  const OfferRanking ranking = rank_offers(offers_, search_.objective);
  std::vector<std::pair<double, std::size_t>> out;
  for (const std::size_t i : left_) {
    const OfferChance chance = chance_of(offers_, i, ranking, search_.objective, prices_);
    offers_[i].behind.reset();
    const bool is_enough = all_.top == 1 && is_close_enough(offers_[i]);
    if (chance.may_clearly_win && !is_enough) out.emplace_back(chance.value, i);
    if (!chance.may_win) offers_[i].behind = chance.behind;
  }
  std::sort(out.begin(), out.end());
  std::vector<std::size_t> indices;
  for (const auto& [value, index] : out) indices.push_back(index);
  return indices;
}

// Each answer decides anew which of the others may still win.
Errors OffersSearch::refine() {
  for (auto next = worth_searching(); !next.empty() && !is_over(all_); next = worth_searching()) {
    std::erase(left_, next.front());
    if (Errors errors = search_one(next.front(), with_share_of_time(all_, next.size()));
        !errors.empty()) {
      return errors;
    }
  }
  return {};
}

}  // namespace

Errors search_offers(const OfferSearch& search, const PriceList& prices,
                     std::vector<Offer>& offers) {
  OffersSearch all(search, prices, offers);
  if (Errors errors = all.answer_all(); !errors.empty()) return errors;
  if (Errors errors = all.refine(); !errors.empty()) return errors;
  Errors refused;
  for (const Offer& offer : offers) {
    if (offer.state != OfferState::kRefused) return {};
    add_new(offer.refused, refused);
  }
  return refused;
}

}  // namespace stepcast
