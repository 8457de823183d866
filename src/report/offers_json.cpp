// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "report/figure_columns.h"
#include "report/number_text.h"
#include "report/offers_report.h"
#include "report/plan_entry.h"
#include "report/plan_report.h"
#include "report/prediction_json.h"
#include "report/run_columns.h"
#include "report/search_gap.h"

namespace stepcast {
namespace {

// Shows the cluster as it was asked for, with its size.
Json cluster_of(const Offer& offer) {
  Json out = Json::parse(offer.request.cluster);
  out.erase("nodes");
  out["gpus"] = offer.gpus();
  return out;
}

Json plan_of(const OffersReport& report, std::size_t index, std::size_t place) {
  const Offer& offer = report.offers[index];
  const SearchResult& result = *offer.result;
  Json out{{"place", place}};
  out.update(plan_entry(*offer.planner, offer.best->found, &offer.best->run));
  out["cluster"] = cluster_of(offer);
  out["meets_limits"] = meets_limits(*offer.best);
  out["proven"] = result.proven;
  if (const auto gap = gap_of(result, offer.best->found.prediction)) put(out, "gap", *gap);
  if (offer.behind && std::isfinite(*offer.behind)) put(out, "cannot_win_by", *offer.behind);
  put(out, "searched", result.combinations);
  out["bounded"] = {{"subtrees", result.subtrees}, {"layouts", result.bounded}};
  out["replayed"] = result.replayed;
  const std::string against = offer_reason(report, offer);
  const std::string binds = binding_text(*offer.planner, offer.best->found, result);
  out["reason"] = against.empty() ? binds : against + "; " + binds;
  return out;
}

Json rejected_of(const Offer& offer) {
  Json out{{"cluster", cluster_of(offer)}, {"reason", no_place_reason(offer)}};
  if (offer.state == OfferState::kNothingFits && offer.result->smallest) {
    out["bound"] = "memory";
    out["value"] = offer.result->smallest->device_bytes;
    out["limit"] = offer.result->memory_limit;
    put_layout(out, *offer.planner, offer.result->smallest->choice);
  }
  if (offer.state == OfferState::kRefused && !offer.refused.empty()) {
    out["rule"] = offer.refused.front().path;
  }
  return out;
}

Json answers_of(const OffersReport& report) {
  Json out = Json::object();
  for (const NamedAnswer& answer : named_answers(report)) {
    const Offer& offer = report.offers[answer.offer];
    out[answer.key] = {{"place", place_of(report, answer.offer)},
                       {"cluster", offer.request.label},
                       {"gpus", offer.gpus()}};
  }
  return out;
}

}  // namespace

Written offers_json(const OffersReport& report) {
  Json out;
  out["stepcast"] = 1;
  out["objective"] = name_of(report.objective);
  out["plans"] = Json::array();
  std::size_t place = 0;
  for (const std::size_t index : report.ranking.order) {
    if (++place > report.top) break;
    out["plans"].push_back(plan_of(report, index, place));
  }
  out["answers"] = answers_of(report);
  out["pareto"] = Json::array();
  for (const ParetoPoint& point : report.pareto) {
    const Offer& offer = report.offers[point.offer];
    Json entry = pareto_entry(*offer.planner, point.layout->found, &point.layout->run);
    entry["cluster"] = offer.request.label;
    out["pareto"].push_back(std::move(entry));
  }
  out["rejected"] = Json::array();
  for (const std::size_t index : report.ranking.others) {
    out["rejected"].push_back(rejected_of(report.offers[index]));
  }
  const OfferTotals totals = totals_of(report);
  put(out, "searched", totals.combinations);
  out["pruned"] = {{"by_rules_or_equal", totals.combinations - totals.differing},
                   {"by_memory_bound", totals.cut_by_memory},
                   {"by_time_bound", totals.cut_by_time}};
  out["bounded"] = {{"subtrees", totals.subtrees}, {"layouts", totals.bounded}};
  out["replayed"] = totals.replayed;
  out["proven"] = totals.proven;
  return json_file(out, 2);
}

Written offers_csv(const OffersReport& report) {
  std::vector<Column> columns = {{"place"}, {"cluster"}, {"gpus"}};
  for (Column& column : layout_csv_columns()) columns.push_back(std::move(column));
  for (Column& column : figure_keys(kOfferRows)) columns.push_back(std::move(column));
  for (const char* title : {"bound_s", "proven", "usd_per_gpu_hour"}) columns.push_back({title});
  for (Column& column : run_csv_columns()) columns.push_back(std::move(column));
  columns.push_back({"reason"});
  TextTable table(std::move(columns));
  std::size_t place = 0;
  for (const std::size_t index : report.ranking.order) {
    if (++place > report.top) break;
    const Offer& offer = report.offers[index];
    const FoundLayout& found = offer.best->found;
    const RunTerms& terms = offer.best->run.terms;
    std::vector<std::string> cells = {fmt::format("{}", place), offer.request.label,
                                      fmt::format("{}", offer.gpus())};
    const auto add = [&](std::vector<std::string> more) {
      for (std::string& cell : more) cells.push_back(std::move(cell));
    };
    add(layout_csv_cells(*offer.planner, found.choice));
    for (const FigureCell& cell : figure_cells(kOfferRows, found.prediction)) {
      cells.push_back(cell.exact());
    }
    add({exact_text(found.bound_s), offer.result->proven ? "true" : "false",
         terms.dollars_per_gpu_hour ? exact_text(*terms.dollars_per_gpu_hour) : ""});
    add(run_csv_cells(offer.best->run));
    add({offer_reason(report, offer)});
    table.add_row(std::move(cells));
  }
  return table.csv();
}

}  // namespace stepcast
