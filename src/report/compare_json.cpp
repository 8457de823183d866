// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "report/breakdown.h"
#include "report/compare_report.h"
#include "report/difference.h"
#include "report/number_text.h"
#include "report/prediction_json.h"
#include "report/text_table.h"

namespace stepcast {

using nlohmann::ordered_json;

std::string compare_json(const CompareReport& report) {
  ordered_json out;
  out["stepcast"] = 1;
  const auto varied = [&](const ComparedPoint& point) {
    ordered_json object = ordered_json::object();
    for (std::size_t k = 0; k < report.keys.size(); ++k) {
      auto value = ordered_json::parse(point.values[k], nullptr, false);
      if (value.is_discarded()) value = point.values[k];
      object[report.keys[k]] = std::move(value);
    }
    return object;
  };
  out["plans"] = ordered_json::array();
  const std::vector<std::size_t> order = ranked(report);
  for (std::size_t place = 0; place < order.size(); ++place) {
    const ComparedPoint& point = report.points[order[place]];
    const Prediction& best = *report.points[order.front()].prediction;
    ordered_json prediction = prediction_object(*point.scenario, *point.prediction);
    prediction["mean_time_s"] = time_object(mean_time(*point.prediction));
    ordered_json entry{{"place", place + 1}, {"varied", varied(point)}};
    entry["layout"] = prediction["resolved"]["layout"];
    entry["cluster"] = {{"base", point.scenario->cluster.spec.name},
                        {"gpus", point.scenario->cluster.gpus()}};
    entry["reason"] =
        place == 0 ? std::string() : difference_text(*point.scenario, *point.prediction, best);
    entry["prediction"] = std::move(prediction);
    out["plans"].push_back(std::move(entry));
  }
  out["pareto"] = ordered_json::array();
  out["rejected"] = ordered_json::array();
  for (const ComparedPoint& point : report.points) {
    if (point.prediction) continue;
    out["rejected"].push_back({{"varied", varied(point)},
                               {"rule", point.errors.front().path},
                               {"value", to_string(point.errors.front())}});
  }
  if (!report.sensitivity.empty()) {
    ordered_json& list = out["sensitivity"] = ordered_json::array();
    for (const Sensitivity& one : report.sensitivity) {
      list.push_back({{"resource", one.resource},
                      {"change", report.change},
                      {"slower_step_time_s", one.slower.value()},
                      {"faster_step_time_s", one.faster.value()}});
    }
  }
  return out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string compare_csv(const CompareReport& report) {
  std::vector<Column> columns = {{"place"}};
  for (const std::string& key : report.keys) columns.push_back({key});
  for (const char* title : {"gpus", "fits", "step_time_s", "tokens_per_s", "tokens_per_s_per_gpu",
                            "mfu", "bubble_fraction", "peak_device_bytes"}) {
    columns.push_back({title});
  }
  for (const TimePart& part : parts_of(TimeParts{})) {
    columns.push_back({std::string("mean_") + part.key + "_s"});
  }
  columns.push_back({"error"});
  TextTable table(columns);
  const std::vector<std::size_t> place = places(report);
  for (std::size_t i = 0; i < report.points.size(); ++i) {
    const ComparedPoint& point = report.points[i];
    std::vector<std::string> cells = {place[i] == 0 ? "" : std::to_string(place[i])};
    cells.insert(cells.end(), point.values.begin(), point.values.end());
    if (point.prediction) {
      const Prediction& p = *point.prediction;
      for (const std::string& cell :
           {std::to_string(point.scenario->cluster.gpus()), std::string(p.fits ? "true" : "false"),
            exact_text(p.step_time.value()), exact_text(p.tokens_per_s),
            exact_text(p.tokens_per_s_per_gpu), exact_text(p.mfu), exact_text(p.bubble_fraction),
            std::to_string(p.peak_device)}) {
        cells.push_back(cell);
      }
      for (const TimePart& part : parts_of(mean_time(p))) {
        cells.push_back(exact_text(part.time.value()));
      }
      cells.emplace_back();
    } else {
      cells.resize(columns.size() - 1);
      cells.push_back(to_string(point.errors.front()));
    }
    table.add_row(std::move(cells));
  }
  return table.csv();
}

}  // namespace stepcast
