// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "core/json_tree.h"
#include "core/pareto_front.h"
#include "core/parse_json.h"
#include "core/text/escape.h"
#include "report/breakdown.h"
#include "report/compare_report.h"
#include "report/difference.h"
#include "report/figure_columns.h"
#include "report/number_text.h"
#include "report/prediction_json.h"
#include "report/text_table.h"

namespace stepcast {

namespace {

Json varied(const CompareReport& report, const ComparedPoint& point) {
  Json out = Json::object();
  for (std::size_t k = 0; k < report.keys.size(); ++k) {
    const auto value = parse_ordered_json(point.values[k], "");
    out[report.keys[k]] = value && report.keys[k] != "file" ? *value : Json(point.values[k]);
  }
  return out;
}

Json plan(const CompareReport& report, const ComparedPoint& point, std::size_t place,
          const Prediction& best) {
  Json prediction = prediction_object(*point.scenario, *point.prediction);
  prediction["mean_time_s"] = time_object(mean_time(*point.prediction));
  Json out{{"place", place}, {"varied", varied(report, point)}};
  put_layout(out, *point.scenario);
  out["cluster"] = {{"base", point.scenario->cluster.spec.name},
                    {"gpus", point.scenario->whole_cluster().gpus()}};
  out["reason"] =
      place == 1 ? std::string() : difference_text(*point.scenario, *point.prediction, best);
  out["prediction"] = std::move(prediction);
  if (point.unchanged) out["unchanged_step_time_s"] = point.unchanged->step_time.value();
  return out;
}

// Returns what the point has where the rule looks: as it is varied, else as it is stated. Null when
// the rule is about several keys.
Json value_against(const Json& point, const std::string& rule) {
  if (point["varied"].contains(rule)) return point["varied"][rule];
  const std::string prefix = "layout.";
  if (!rule.starts_with(prefix) || !point["layout"].is_object()) return nullptr;
  return point["layout"].value(rule.substr(prefix.size()), Json());
}

Json rejected(const CompareReport& report, const ComparedPoint& point) {
  const Error& error = point.errors.front();
  Json out{{"varied", varied(report, point)}};
  if (point.scenario) {
    put_layout(out, *point.scenario);
  } else {
    out["layout"] = Json::parse(point.stated_layout);
  }
  out["rule"] = error.path;
  out["value"] = value_against(out, error.path);
  out["message"] = error.message;
  if (!error.hint.empty()) out["limit"] = error.hint;
  return out;
}

// Time, memory and GPUs of what fits.
void put_front(const CompareReport& report, const std::vector<std::size_t>& order, Json& out) {
  out["pareto"] = Json::array();
  std::vector<std::vector<double>> figures;
  for (const std::size_t index : order) {
    const ComparedPoint& point = report.points[index];
    const Prediction& p = *point.prediction;
    if (!p.fits) break;  // the rest does not either
    figures.push_back({p.step_time.value(), static_cast<double>(p.peak_device),
                       static_cast<double>(point.scenario->whole_cluster().gpus())});
  }
  for (const std::size_t at : pareto_front(figures)) {
    const ComparedPoint& point = report.points[order[at]];
    Json entry{{"step_time_s", point.prediction->step_time.value()},
               {"peak_device_bytes", point.prediction->peak_device},
               {"gpus", point.scenario->whole_cluster().gpus()},
               {"varied", varied(report, point)}};
    put_layout(entry, *point.scenario);
    out["pareto"].push_back(std::move(entry));
  }
}

// Every point of the grid is either refused or forecast, so the first place is certain.
void put_search(const CompareReport& report, std::size_t forecast, Json& out) {
  out["searched"] = report.points.size();
  out["pruned"] = {{"by_rules_or_equal", report.points.size() - forecast},
                   {"by_memory_bound", 0},
                   {"by_time_bound", 0}};
  out["legal"] = forecast;
  out["replayed"] = forecast;
  out["proven"] = true;
}

}  // namespace

Written compare_json(const CompareReport& report) {
  Json out;
  out["stepcast"] = 1;
  out["plans"] = Json::array();
  const std::vector<std::size_t> order = ranked(report);
  for (std::size_t place = 1; place <= order.size(); ++place) {
    out["plans"].push_back(plan(report, report.points[order[place - 1]], place,
                                *report.points[order.front()].prediction));
  }
  put_front(report, order, out);
  out["rejected"] = Json::array();
  for (const ComparedPoint& point : report.points) {
    if (!point.prediction) out["rejected"].push_back(rejected(report, point));
  }
  put_search(report, order.size(), out);
  if (const std::vector<std::string> files = compared_files(report); !files.empty()) {
    Json& list = out["differences"] = Json::array();
    for (const KeyDifference& one : report.differences) {
      Json values = Json::object();
      for (std::size_t i = 0; i < files.size(); ++i) values[files[i]] = one.values[i];
      list.push_back({{"key", one.key}, {"values", std::move(values)}});
    }
  }
  if (!report.sensitivity.empty()) {
    Json& list = out["sensitivity"] = Json::array();
    for (const Sensitivity& one : report.sensitivity) {
      list.push_back({{"resource", one.resource},
                      {"change", report.change},
                      {"slower_step_time_s", one.slower.value()},
                      {"faster_step_time_s", one.faster.value()}});
    }
  }
  return json_file(out, 2);
}

Written compare_csv(const CompareReport& report) {
  std::vector<Column> columns = {{"place"}};
  for (const std::string& key : report.keys) columns.push_back({key});
  for (const char* title : {"gpus", "fits"}) columns.push_back({title});
  for (Column& column : figure_keys(kComparedRows)) columns.push_back(std::move(column));
  for (const TimePart& part : parts_of(TimeParts{})) {
    columns.push_back({fmt::format("mean_{}_s", part.key)});
  }
  if (!report.what_if.empty()) columns.push_back({"unchanged_step_time_s"});
  columns.push_back({"error"});
  TextTable table(columns);
  const std::vector<std::size_t> place = places(report);
  for (std::size_t i = 0; i < report.points.size(); ++i) {
    const ComparedPoint& point = report.points[i];
    std::vector<std::string> cells = {place[i] == 0 ? "" : std::to_string(place[i])};
    cells.insert(cells.end(), point.values.begin(), point.values.end());
    if (point.prediction) {
      const Prediction& p = *point.prediction;
      cells.push_back(std::to_string(point.scenario->whole_cluster().gpus()));
      cells.emplace_back(p.fits ? "true" : "false");
      for (const FigureCell& cell : figure_cells(kComparedRows, p)) cells.push_back(cell.exact());
      for (const TimePart& part : parts_of(mean_time(p))) {
        cells.push_back(exact_text(part.time.value()));
      }
      if (point.unchanged) cells.push_back(exact_text(point.unchanged->step_time.value()));
      cells.resize(columns.size());
    } else {
      cells.resize(columns.size() - 1);
      cells.push_back(refusal_text(point));
    }
    table.add_row(std::move(cells));
  }
  return table.csv();
}

}  // namespace stepcast
