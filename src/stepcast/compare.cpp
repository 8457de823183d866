// SPDX-License-Identifier: Apache-2.0
#include "stepcast/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/gathered_errors.h"
#include "core/json_tree.h"
#include "core/machine_errors.h"
#include "core/parallel.h"
#include "core/text/escape.h"
#include "core/work_limits.h"
#include "layout/read_scenario.h"
#include "report/compare_report.h"
#include "stepcast/detail/data_root.h"
#include "stepcast/detail/read_scenario.h"

namespace stepcast::api {

struct Comparison::Made {
  CompareReport report;
};

namespace {

Errors two_of_one_name(const std::vector<Scenario>& scenarios) {
  std::set<std::string> names;
  for (const Scenario& scenario : scenarios) {
    if (names.insert(scenario.name()).second) continue;
    return {{ErrorCode::kIllegal, fmt::format("two scenarios are named '{}'", scenario.name()), "",
             "", "give one of them another name"}};
  }
  return {};
}

// The scenarios as they are resolved, or as they are stated where a rule refuses them.
std::vector<KeyDifference> differences_of(const std::vector<Scenario>& scenarios,
                                          const std::vector<ComparedPoint>& points) {
  std::vector<SortedJson> texts;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    const auto& resolved = points[i].scenario;
    texts.push_back(resolved ? to_json(*resolved) : SortedJson::parse(scenarios[i].json()));
  }
  std::vector<ComparedDocument> documents;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    documents.push_back({texts[i], points[i].scenario.has_value()});
  }
  return key_differences(documents);
}

// `draws`: with the passes of its pipeline.
ComparedPoint point_of(const Scenario& scenario, bool draws) {
  ComparedPoint out;
  out.values = {scenario.name()};
  auto one = read(scenario);
  if (!one) {
    out.errors = one.error();
    const auto stated = SortedJson::parse(scenario.json());
    const bool has = stated.is_object() && stated.contains("layout");
    out.stated_layout = has ? json_text(stated["layout"]) : "{}";
    return out;
  }
  stepcast::PredictOptions options;
  options.trace = draws && one->layout.pp > 1;
  auto prediction = stepcast::predict(*one, scenario.data().root().folders, options);
  if (prediction) {
    out.prediction = std::move(*prediction);
  } else {
    out.errors = prediction.error();
  }
  out.scenario = std::move(*one);
  return out;
}

}  // namespace

Result<Comparison> compare(const std::vector<Scenario>& scenarios, int threads,
                           const std::function<bool()>& stop) {
  if (Errors errors = two_of_one_name(scenarios); !errors.empty()) {
    return failure(std::move(errors));
  }
  const StopScope scope(stop);
  CompareReport report;
  report.keys = {kFilesKey};
  report.points.resize(scenarios.size());
  try {
    run_in_parallel(threads, scenarios.size(), [&](std::size_t, std::size_t i) {
      report.points[i] = point_of(scenarios[i], scenarios.size() <= 2);
    });
    end_if_stopped();
  } catch (const Stopped&) {
    return failure(Errors{});
  }
  Errors refused, all;
  for (const ComparedPoint& point : report.points) {
    add_new(refused_by_machine(point.errors), refused);
    append(all, point.errors);
  }
  if (!refused.empty()) return failure(std::move(refused));
  const bool any = std::ranges::any_of(
      report.points, [](const ComparedPoint& point) { return point.prediction.has_value(); });
  if (!any) {
    if (all.empty()) all.push_back({ErrorCode::kMissingKey, "nothing to compare", "", "", ""});
    return failure(std::move(all));
  }
  if (scenarios.size() > 1) report.differences = differences_of(scenarios, report.points);
  return Comparison(std::make_shared<const Comparison::Made>(Comparison::Made{std::move(report)}));
}

std::string Comparison::json() const { return compare_json(made_->report); }
std::string Comparison::csv() const { return compare_csv(made_->report); }
std::string Comparison::text() const { return compare_table(made_->report); }
std::string Comparison::markdown() const { return compare_markdown(made_->report); }
std::string Comparison::html() const { return compare_html(made_->report); }

}  // namespace stepcast::api
