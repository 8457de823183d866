// SPDX-License-Identifier: Apache-2.0
#include "report/plan_entry.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"
#include "plan/layout_dimension.h"
#include "plan/planner.h"
#include "plan/search_result.h"
#include "plan/space.h"
#include "report/prediction_json.h"
#include "report/run_report.h"

namespace stepcast {

void put_layout(Json& out, const Planner& planner, const LayoutChoice& choice) {
  Scenario scenario = planner.space().base();
  planner.space().put(choice, scenario);
  put_layout(out, scenario);
}

SortedJson with_layout(SortedJson stated, const Planner& planner, const LayoutChoice& choice) {
  Json chosen;
  put_layout(chosen, planner, choice);
  stated["training"]["framework"] = SortedJson(chosen["framework"]);
  stated["layout"] = SortedJson(chosen["layout"]);
  return stated;
}

Json plan_entry(const Planner& planner, const FoundLayout& found, const RunOutlook* run) {
  Scenario scenario = planner.space().base();
  planner.space().put(found.choice, scenario);
  Json out;
  put_layout(out, scenario);
  out["cluster"] = {{"base", scenario.cluster.spec.name},
                    {"gpus", scenario.whole_cluster().gpus()}};
  out["prediction"] = prediction_object(scenario, found.prediction);
  out["interval_s"] = {found.prediction.step_time_low.value(),
                       found.prediction.step_time_high.value()};
  out["verdict"] = proof_text(found.prediction);
  if (run != nullptr) out["economics"] = run_object(run->terms, run->forecast);
  put(out, "bound_s", found.bound_s);
  return out;
}

Json pareto_entry(const Planner& planner, const FoundLayout& found, const RunOutlook* run) {
  const Cluster& cluster = planner.space().base().cluster;
  Json out{{"step_time_s", found.prediction.step_time.value()},
           {"peak_device_bytes", found.prediction.peak_device},
           {"gpus", cluster.gpus()},
           {"cluster", cluster.spec.name}};
  if (run != nullptr) {
    const RunForecast& forecast = run->forecast;
    if (forecast.length && forecast.length->dollars) {
      put(out, "cost_usd", forecast.length->dollars->value);
    } else if (forecast.dollars_per_million_tokens) {
      put(out, "usd_per_million_tokens", *forecast.dollars_per_million_tokens);
    }
  }
  put_layout(out, planner, found.choice);
  return out;
}

std::vector<Column> layout_csv_columns() {
  std::vector<Column> out = {{"framework"}};
  for (const LayoutDimension& dimension : layout_dimensions()) {
    out.push_back({std::string(dimension.path).substr(std::string("layout.").size())});
  }
  out.push_back({"dp"});
  return out;
}

std::vector<std::string> layout_csv_cells(const Planner& planner, const LayoutChoice& choice) {
  Scenario scenario = planner.space().base();
  planner.space().put(choice, scenario);
  const auto resolved = to_json(scenario);
  std::vector<std::string> out = {name_of(scenario.training.framework)};
  for (const LayoutDimension& dimension : layout_dimensions()) {
    const SortedJson* value = resolved.find_path(dimension.path);
    if (value == nullptr) {  // a key that says nothing here
      out.emplace_back();
    } else {
      out.push_back(value->is_string() ? value->get_text() : json_text(*value));
    }
  }
  out.push_back(fmt::format("{}", scenario.layout.dp));
  return out;
}

std::string proof_text(const Prediction& prediction) {
  if (prediction.unproven.empty())
    return "recorded runs of two publishers or more have exercised all of it";
  return fmt::format("too few recorded runs, or those of one publisher alone, have exercised: {}",
                     fmt::join(prediction.unproven, "; "));
}

}  // namespace stepcast
