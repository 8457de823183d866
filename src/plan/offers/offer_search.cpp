// SPDX-License-Identifier: Apache-2.0
#include "plan/offers/offer_search.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/gathered_errors.h"
#include "core/json_tree.h"

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

void take(SearchResult result, const PriceList& prices, Offer& offer) {
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

Errors search_offers(const OfferSearch& search, const PriceList& prices,
                     std::vector<Offer>& offers) {
  SearchOptions all = search.layouts;
  share_time_limit(all);
  for (std::size_t i = 0; i < offers.size(); ++i) {
    Offer& offer = offers[i];
    if (!offer.planner) continue;
    if (is_over(all)) break;
    if (search.begins) search.begins(i, offer);
    auto result = search_by(search.objective, *offer.planner, prices,
                            with_share_of_time(all, offers.size() - i));
    if (!result) return result.error();
    take(std::move(*result), prices, offer);
  }
  Errors refused;
  for (const Offer& offer : offers) {
    if (offer.state != OfferState::kRefused) return {};
    add_new(offer.refused, refused);
  }
  return refused;
}

}  // namespace stepcast
