// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "plan/planner.h"
#include "plan/space.h"
#include "report/breakdown.h"
#include "report/document_form.h"
#include "report/figure_columns.h"
#include "report/number_text.h"
#include "report/plan_entry.h"
#include "report/plan_report.h"
#include "report/run_columns.h"
#include "report/text_table.h"

namespace stepcast {
namespace {

constexpr std::size_t kRules = 6;
constexpr std::size_t kTooLarge = 3;

Written ranking(const PlanReport& report, Form form) {
  const bool money = report.prices != nullptr;
  const bool length =
      money && report.planner.space().base().run && report.planner.space().base().run->tokens;
  std::vector<Column> columns = {{"place"}};
  for (const char* title : figure_titles(kGrid)) columns.push_back({title});
  columns.insert(columns.begin() + 2, {"90 %"});  // behind the step
  if (money) {
    for (Column& column : run_columns(length)) columns.push_back(std::move(column));
  }
  // Beside so many columns a layout would leave the terminal.
  columns.push_back({"layout", Align::kLeft, money});
  columns.push_back({"why", Align::kLeft, true});
  TextTable table(std::move(columns));
  std::size_t place = 0;
  const std::vector<PlanRow> rows = plan_rows(report);
  const std::vector<std::string> layouts = row_layouts(report, rows);
  for (const PlanRow& row : rows) {
    const Prediction& p = row.found->prediction;
    std::string layout = layouts[place];
    if (row.equals > 0) layout += fmt::format(" (and {} equal)", row.equals);
    std::vector<std::string> cells = {fmt::format("{}", ++place)};
    for (const FigureCell& cell : figure_cells(kGrid, p)) cells.push_back(cell.text());
    cells.insert(cells.begin() + 2,
                 range_text(time_text(p.step_time_low), time_text(p.step_time_high)));
    if (money) {
      const RunOutlook run = outlook_of(report.planner, *report.prices, *row.found);
      for (RunCell& cell : run_cells(run, length)) cells.push_back(std::move(cell.text));
    }
    cells.push_back(std::move(layout));
    cells.push_back(reason(report, *row.found));
    table.add_row(std::move(cells));
  }
  return shown(table, form);
}

Written run_lines(const PlanReport& report, Form form) {
  const RunOutlook run = outlook_of(report.planner, *report.prices, report.result.found.front());
  Written out = bullet(price_text(run.terms), form);
  if (!run.forecast.length) return out;
  for (const std::string& limit : limit_texts(run)) out += bullet("the first place " + limit, form);
  return out;
}

Written front(const PlanReport& report, Form form) {
  TextTable table({{"GiB"}, {"step"}, {"GPUs"}, {"layout", Align::kLeft}});
  for (const std::size_t index : report.result.front) {
    const FoundLayout& found = report.result.found[index];
    table.add_row({gib_text(found.prediction.peak_device), time_text(found.prediction.step_time),
                   fmt::format("{}", report.planner.space().base().whole_cluster().gpus()),
                   choice_text(report.planner, found.choice)});
  }
  return shown(table, form);
}

Written search_lines(const PlanReport& report, Form form) {
  const SearchResult& r = report.result;
  Written out;
  out +=
      bullet(fmt::format("{} combinations of the open keys; bounds of {} subtrees and {} layouts",
                         count_text(r.combinations), count_text(static_cast<double>(r.subtrees)),
                         count_text(static_cast<double>(r.bounded))),
             form);
  out += bullet(
      fmt::format("{} need more than {} GiB by the bound on memory, {} layouts more by replay",
                  count_text(r.cut_by_memory), gib_text(r.memory_limit), r.replayed_too_large),
      form);
  if (r.proven && !r.found.empty()) {
    out += bullet(fmt::format("{} are no faster than the last place by the bound on time",
                              count_text(r.cut_by_time)),
                  form);
  }
  out += bullet(fmt::format("{} replayed by the engine", r.replayed), form);
  return out;
}

Written rejections(const PlanReport& report, Form form) {
  const SearchResult& r = report.result;
  std::vector<std::pair<std::string, RuleCount>> rules = rules_by_branches(r);
  if (rules.size() > kRules) rules.resize(kRules);
  Written out;
  for (const auto& [key, rule] : rules) {
    out += bullet(
        fmt::format(
            "{}: {} branches, for example: {}", key, count_text(static_cast<double>(rule.subtrees)),
            to_string(Error{rule.example.code, rule.example.message, "", "", rule.example.hint})),
        form);
  }
  for (std::size_t i = 0; i < std::min(kTooLarge, r.too_large.size()); ++i) {
    const BoundedLayout& large = r.too_large[i];
    out +=
        bullet(fmt::format("{}: needs {} of {} GiB (at best {})",
                           choice_text(report.planner, large.choice), gib_text(large.device_bytes),
                           gib_text(r.memory_limit), time_text(Seconds(large.bound_s))),
               form);
  }
  return out;
}

Written answer(const PlanReport& report, const WhyNot& why, Form form) {
  if (!why.rules.empty()) {
    Written out;
    for (const Error& error : why.rules) {
      out += bullet(fmt::format("{}: refused: {}", why.asked, to_string(error)), form);
    }
    return out;
  }
  const std::string changed =
      why.changed.empty() ? ""
                          : fmt::format(" (with {} as it must be)", fmt::join(why.changed, ", "));
  const Written first_line =
      bullet(fmt::format("{}{}: {}", why.asked, changed, answer_text(report, why)), form);
  return why.reason.empty() ? first_line : first_line + bullet("  " + why.reason, form);
}

Written written(const PlanReport& report, Form form) {
  Written out = form == Form::kMarkdown ? title("Plan", form) : Written();
  out += line(headline(report.planner.space().base()), form) + paragraph_end(form);
  out += line(verdict_text(report), form) + paragraph_end(form);
  for (const std::string& one : scope_lines(report)) out += line(one, form);
  if (!report.result.found.empty()) {
    out += heading("Layouts", form) + ranking(report, form);
    const Prediction& first = report.result.found.front().prediction;
    if (const std::string tie = tie_text(report); !tie.empty()) out += bullet(tie, form);
    out += bullet("the first place: " + proof_text(first), form);
    if (report.balanced) out += bullet(balanced_text(report), form);
    if (!report.recorded.empty()) out += bullet(recorded_runs_text(report.recorded), form);
    if (!report.export_note.empty()) out += bullet(report.export_note, form);
    // Whoever trains adapters has the choice of trainers, which the framework does not name.
    if (!report.export_target.empty() && report.planner.space().base().training.trains_adapters()) {
      out += bullet(fmt::format("export --to {} launches the first place", report.export_target),
                    form);
    }
    if (report.today) out += bullet(today_text(report), form);
    if (report.prices != nullptr) out += heading("The run", form) + run_lines(report, form);
  }
  if (report.result.front.size() > 1) {
    out += heading("Less memory", form) + front(report, form);
  }
  if (!report.why_not.empty()) {
    out += heading("Why not", form);
    for (const WhyNot& why : report.why_not) out += answer(report, why, form);
  }
  out += heading("The search", form) + search_lines(report, form);
  const Written rejected = rejections(report, form);
  if (!rejected.empty()) out += heading("Rejected", form) + rejected;
  return out;
}

}  // namespace

Written plan_table(const PlanReport& report) { return written(report, Form::kText); }
Written plan_markdown(const PlanReport& report) { return written(report, Form::kMarkdown); }

}  // namespace stepcast
