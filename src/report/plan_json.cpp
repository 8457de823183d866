// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "plan/planner.h"
#include "plan/space.h"
#include "report/breakdown.h"
#include "report/figure_columns.h"
#include "report/number_text.h"
#include "report/plan_entry.h"
#include "report/plan_report.h"
#include "report/prediction_json.h"
#include "report/run_columns.h"
#include "report/search_gap.h"
#include "report/text_table.h"

namespace stepcast {
namespace {

class PlanWriter {
 public:
  explicit PlanWriter(const PlanReport& report) : report_(report) {}

  Json object();

 private:
  std::optional<RunOutlook> run(const FoundLayout& found) const {
    if (report_.prices == nullptr) return std::nullopt;
    return outlook_of(report_.planner, *report_.prices, found);
  }
  Json plan(const FoundLayout& found) const {
    const auto of_run = run(found);
    Json out = plan_entry(report_.planner, found, of_run ? &*of_run : nullptr);
    out["reason"] = reason(report_, found);
    return out;
  }
  Json rejected(const BoundedLayout& large) {
    Json out{
        {"bound", "memory"}, {"value", large.device_bytes}, {"limit", report_.result.memory_limit}};
    put_layout(out, report_.planner, large.choice);
    return out;
  }
  Json why_not(const WhyNot& why);
  Json today() const;

  const PlanReport& report_;
};

Json PlanWriter::why_not(const WhyNot& why) {
  Json out;
  out["asked"] = why.asked;
  if (!why.changed.empty()) out["changed"] = why.changed;
  if (!why.rules.empty()) {
    out["rules"] = Json::array();
    for (const Error& error : why.rules) out["rules"].push_back(to_string(error));
  } else if (why.large) {
    out["bound"] = "memory";
    out["value"] = why.large->device_bytes;
    out["limit"] = report_.result.memory_limit;
    out["layout"] = why.layout;
  } else if (why.cut_off) {
    out["proven"] = false;
  } else if (why.best) {
    put(out, "step_time_s", why.best->prediction.step_time.value());
    out["layout"] = why.layout;
    if (!report_.result.found.empty()) out["reason"] = why.reason;
  }
  return out;
}

Json PlanWriter::today() const {
  const Prediction& today = report_.today->prediction;
  Json standing{{"layout", report_.today->layout}, {"fits", today.fits}};
  put(standing, "step_time_s", today.step_time.value());
  const auto of_today = place_of_today(report_);
  standing["place"] = of_today ? Json(*of_today) : Json();
  if (!report_.result.found.empty()) {
    put(standing, "behind_first",
        today.step_time / report_.result.found.front().prediction.step_time - 1);
  }
  return standing;
}

Json PlanWriter::object() {
  const SearchResult& result = report_.result;
  Json out;
  out["stepcast"] = 1;
  if (report_.prices != nullptr) out["objective"] = name_of(report_.objective);
  out["plans"] = Json::array();
  std::size_t place = 0;
  for (const PlanRow& row : plan_rows(report_)) {
    Json entry{{"place", ++place}, {"equal_layouts", row.equals}};
    entry.update(plan(*row.found));
    out["plans"].push_back(std::move(entry));
  }
  if (!report_.recorded.empty()) out["recorded_runs"] = recorded_runs_object(report_.recorded);
  if (report_.today) out["today"] = today();
  if (report_.balanced) {
    Json balanced{{"stage_layers", report_.balanced->layers}};
    put(balanced, "step_time_s", report_.balanced->step_time.value());
    out["balanced_stages"] = std::move(balanced);
  }
  if (!report_.export_note.empty()) out["export_note"] = report_.export_note;
  if (!report_.export_target.empty()) out["export"] = report_.export_target;
  out["pareto"] = Json::array();
  for (const std::size_t index : result.front) {
    const auto of_run = run(result.found[index]);
    out["pareto"].push_back(
        pareto_entry(report_.planner, result.found[index], of_run ? &*of_run : nullptr));
  }
  out["rejected"] = Json::array();
  for (const BoundedLayout& large : result.too_large) out["rejected"].push_back(rejected(large));
  for (const auto& [key, rule] : result.space.rules) {
    out["rejected"].push_back(
        {{"rule", key}, {"branches", rule.subtrees}, {"example", rule.example.message}});
  }
  if (!report_.why_not.empty()) {
    out["why_not"] = Json::array();
    for (const WhyNot& why : report_.why_not) out["why_not"].push_back(why_not(why));
  }
  put(out, "searched", result.combinations);
  out["pruned"] = {{"by_rules_or_equal", result.combinations - result.differing()},
                   {"by_memory_bound", result.cut_by_memory},
                   {"by_time_bound", result.cut_by_time}};
  out["bounded"] = {{"subtrees", result.subtrees}, {"layouts", result.bounded}};
  out["replayed"] = result.replayed;
  out["proven"] = result.proven;
  if (result.bound_s > 0) put(out, "bound_s", result.bound_s);
  if (!result.found.empty()) {
    const auto gap = gap_of(result, result.found.front().prediction);
    if (gap) put(out, "gap", *gap);
  }
  out["memory_limit_bytes"] = result.memory_limit;
  return out;
}

}  // namespace

Written plan_json(const PlanReport& report) { return json_file(PlanWriter(report).object(), 2); }

Written plan_csv(const PlanReport& report) {
  std::vector<Column> columns = {{"place"}, {"gpus"}};
  for (Column& column : layout_csv_columns()) columns.push_back(std::move(column));
  for (Column& column : figure_keys(kPlanRows)) columns.push_back(std::move(column));
  for (const char* title : {"bound_s", "equal_layouts", "reason"}) columns.push_back({title});
  const bool money = report.prices != nullptr;
  if (money) {
    for (Column& column : run_csv_columns()) columns.push_back(std::move(column));
  }
  TextTable table(columns);
  std::size_t place = 0;
  for (const PlanRow& row : plan_rows(report)) {
    std::vector<std::string> cells = {
        fmt::format("{}", ++place),
        fmt::format("{}", report.planner.space().base().whole_cluster().gpus())};
    const auto add = [&](std::vector<std::string> more) {
      for (std::string& cell : more) cells.push_back(std::move(cell));
    };
    add(layout_csv_cells(report.planner, row.found->choice));
    for (const FigureCell& cell : figure_cells(kPlanRows, row.found->prediction)) {
      cells.push_back(cell.exact());
    }
    add({exact_text(row.found->bound_s), fmt::format("{}", row.equals),
         reason(report, *row.found)});
    if (money) add(run_csv_cells(outlook_of(report.planner, *report.prices, *row.found)));
    table.add_row(std::move(cells));
  }
  return table.csv();
}

}  // namespace stepcast
