// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "core/json_tree.h"
#include "layout/scenario.h"
#include "plan/planner.h"
#include "plan/space.h"
#include "report/breakdown.h"
#include "report/figure_columns.h"
#include "report/html/data_table.h"
#include "report/html/plan_sections.h"
#include "report/html/prediction_sections.h"
#include "report/html/run_section.h"
#include "report/number_text.h"
#include "report/run_columns.h"

namespace stepcast {
namespace {

using namespace html;

bool has_length(const PlanReport& report) {
  const auto& run = report.planner.space().base().run;
  return run && run->tokens;
}

Section place_section(const PlanReport& report) {
  std::vector<DataColumn> columns{{"place", true}};
  for (const char* title : figure_titles(kGrid)) columns.push_back({title, true});
  columns.push_back({"equal", true});
  const bool length = has_length(report);
  if (report.prices) {
    for (const Column& column : run_columns(length)) columns.push_back({column.title, true});
  }
  columns.push_back({"layout", false, true, true});
  columns.push_back({"why", false, true, true});
  DataTable table("places", "The fastest layouts that fit", columns);
  std::size_t place = 0;
  const std::vector<PlanRow> rows = plan_rows(report);
  const std::vector<std::string> layouts = row_layouts(report, rows);
  for (const PlanRow& row : rows) {
    ++place;
    std::vector<DataCell> cells{{fmt::format("{}", place), static_cast<double>(place)}};
    for (const FigureCell& cell : figure_cells(kGrid, row.found->prediction)) {
      cells.emplace_back(cell.text(), cell.value);
    }
    cells.emplace_back(row.equals > 0 ? fmt::format("+{}", row.equals) : "",
                       static_cast<double>(row.equals));
    if (report.prices) {
      for (DataCell& cell :
           run_data_cells(outlook_of(report.planner, *report.prices, *row.found), length)) {
        cells.push_back(std::move(cell));
      }
    }
    cells.emplace_back(layouts[place - 1]);
    cells.emplace_back(reason(report, *row.found));
    table.add_row(cells);
  }
  return {"place-section", "Places",
          table.html() +
              note("Why: of the first place its largest losses; of the others the parts of the "
                   "mean rank's step that differ from the first, as shares of its step. Equal: "
                   "layouts with the same forecast.")};
}

Section why_not_section(const PlanReport& report) {
  DataTable table("why-not", "What was asked about",
                  {{"layouts with"}, {"answer", false, true, true}, {"why", false, true, true}});
  for (const WhyNot& why : report.why_not) {
    for (const Error& error : why.rules) {
      table.add_row({why.asked, "refused", to_string(error)});
    }
    if (why.rules.empty()) table.add_row({why.asked, answer_text(report, why), why.reason});
  }
  return {"why-not-section", "Why not", table.html()};
}

void add_first_place(const Scenario& scenario, const Prediction& first, Page& page) {
  for (Section& section :
       std::vector<Section>{time_section(first), pipeline_section(first), memory_section(first),
                            link_section(scenario, first), path_section(first),
                            certainty_section(first), scenario_section(scenario)}) {
    page.sections.push_back(of_first_place(std::move(section)));
  }
}

}  // namespace

Written plan_html(const PlanReport& report, const Prediction* first) {
  const SearchResult& result = report.result;
  Scenario scenario = report.planner.space().base();
  if (!result.found.empty()) {
    report.planner.space().put(result.found.front().choice, scenario);
  }
  Page page;
  page.title = headline(scenario);
  page.mood = result.found.empty() ? Mood::kBad : result.proven ? Mood::kGood : Mood::kWarning;
  page.verdict = verdict_text(report);
  if (!result.found.empty()) {
    const Prediction& best = result.found.front().prediction;
    page.figures = prediction_figures(scenario, best);
    page.subtitle = "First place: " + choice_text(scenario);
    page.verdict = fmt::format("The first place takes {} a step. {}. {}", time_text(best.step_time),
                               memory_words(best), page.verdict);
    if (report.prices) {
      const RunOutlook run = outlook_of(report.planner, *report.prices, result.found.front());
      page.verdict += run_sentence(run);
      for (KeyFigure& figure : run_figures(run)) page.figures.push_back(std::move(figure));
    }
    for (const std::string& more : {tie_text(report), report.export_note}) {
      if (!more.empty()) page.verdict += " " + more;
    }
    if (report.today) page.verdict += " Now: " + today_text(report) + ".";
    page.sections = {place_section(report), replayed_section(report)};
    if (report.prices) {
      page.sections.push_back(of_first_place(
          run_section(outlook_of(report.planner, *report.prices, result.found.front()))));
    }
  }
  if (!report.why_not.empty()) page.sections.push_back(why_not_section(report));
  page.sections.push_back(funnel_section(report));
  page.sections.push_back(rejected_section(report));
  if (first != nullptr) add_first_place(scenario, *first, page);
  if (!report.recorded.empty()) {
    page.sections.push_back(of_first_place(recorded_section(report.recorded)));
  }
  page.data = plan_json(report);
  return page_text(page);
}

}  // namespace stepcast
