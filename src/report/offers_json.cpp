// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/text/escape.h"
#include "report/number_text.h"
#include "report/offers_report.h"
#include "report/plan_entry.h"
#include "report/plan_report.h"
#include "report/prediction_json.h"
#include "report/run_columns.h"

namespace stepcast {
namespace {

using nlohmann::ordered_json;

// Shows the cluster as it was asked for, with its size.
ordered_json cluster_of(const Offer& offer) {
  ordered_json out = ordered_json::parse(offer.request.cluster);
  out.erase("nodes");
  out["gpus"] = offer.gpus();
  return out;
}

ordered_json plan_of(const OffersReport& report, std::size_t index, std::size_t place) {
  const Offer& offer = report.offers[index];
  const SearchResult& result = *offer.result;
  ordered_json out{{"place", place}};
  out.update(plan_entry(*offer.planner, offer.best->found, &offer.best->run));
  out["cluster"] = cluster_of(offer);
  out["meets_limits"] = meets_limits(*offer.best);
  out["proven"] = result.proven;
  put(out, "searched", result.combinations);
  out["legal"] = result.bounded;
  out["replayed"] = result.replayed;
  const std::string against = offer_reason(report, offer);
  const std::string binds = binding_text(*offer.planner, offer.best->found, result);
  out["reason"] = against.empty() ? binds : against + "; " + binds;
  return out;
}

ordered_json rejected_of(const Offer& offer) {
  ordered_json out{{"cluster", cluster_of(offer)}, {"reason", no_place_reason(offer)}};
  if (offer.state == OfferState::kNothingFits && offer.result->smallest) {
    out["bound"] = "memory";
    out["value"] = offer.result->smallest->device_bytes;
    out["limit"] = offer.result->memory_limit;
    out["layout"] = layout_object(*offer.planner, offer.result->smallest->choice);
  }
  if (offer.state == OfferState::kRefused && !offer.refused.empty()) {
    out["rule"] = offer.refused.front().path;
  }
  return out;
}

ordered_json answers_of(const OffersReport& report) {
  ordered_json out = ordered_json::object();
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
  ordered_json out;
  out["stepcast"] = 1;
  out["objective"] = name_of(report.objective);
  out["plans"] = ordered_json::array();
  std::size_t place = 0;
  for (const std::size_t index : report.ranking.order) {
    if (++place > report.top) break;
    out["plans"].push_back(plan_of(report, index, place));
  }
  out["answers"] = answers_of(report);
  out["pareto"] = ordered_json::array();
  for (const ParetoPoint& point : report.pareto) {
    const Offer& offer = report.offers[point.offer];
    ordered_json entry = pareto_entry(*offer.planner, point.layout->found, &point.layout->run);
    entry["cluster"] = offer.request.label;
    out["pareto"].push_back(std::move(entry));
  }
  out["rejected"] = ordered_json::array();
  for (const std::size_t index : report.ranking.others) {
    out["rejected"].push_back(rejected_of(report.offers[index]));
  }
  const OfferTotals totals = totals_of(report);
  put(out, "searched", totals.combinations);
  out["pruned"] = {{"by_rules_or_equal", totals.combinations - totals.bounded},
                   {"by_memory_bound", totals.cut_by_memory},
                   {"by_time_bound", totals.cut_by_time}};
  put(out, "legal", totals.bounded);
  out["replayed"] = totals.replayed;
  out["proven"] = totals.proven;
  return json_file(out, 2);
}

Written offers_csv(const OffersReport& report) {
  std::vector<Column> columns = {{"place"}, {"cluster"}, {"gpus"}};
  for (Column& column : layout_csv_columns()) columns.push_back(std::move(column));
  for (const char* title : {"step_time_s", "step_time_low_s", "step_time_high_s", "tokens_per_s",
                            "mfu", "peak_device_bytes", "bound_s", "proven", "usd_per_gpu_hour"}) {
    columns.push_back({title});
  }
  for (Column& column : run_csv_columns()) columns.push_back(std::move(column));
  columns.push_back({"reason"});
  TextTable table(std::move(columns));
  std::size_t place = 0;
  for (const std::size_t index : report.ranking.order) {
    if (++place > report.top) break;
    const Offer& offer = report.offers[index];
    const FoundLayout& found = offer.best->found;
    const Prediction& p = found.prediction;
    const RunTerms& terms = offer.best->run.terms;
    std::vector<std::string> cells = {fmt::format("{}", place), offer.request.label,
                                      fmt::format("{}", offer.gpus())};
    const auto add = [&](std::vector<std::string> more) {
      for (std::string& cell : more) cells.push_back(std::move(cell));
    };
    add(layout_csv_cells(*offer.planner, found.choice));
    add({exact_text(p.step_time.value()), exact_text(p.step_time_low.value()),
         exact_text(p.step_time_high.value()), exact_text(p.tokens_per_s), exact_text(p.mfu),
         fmt::format("{}", p.peak_device), exact_text(found.bound_s),
         offer.result->proven ? "true" : "false",
         terms.dollars_per_gpu_hour ? exact_text(*terms.dollars_per_gpu_hour) : ""});
    add(run_csv_cells(offer.best->run));
    add({offer_reason(report, offer)});
    table.add_row(std::move(cells));
  }
  return table.csv();
}

}  // namespace stepcast
