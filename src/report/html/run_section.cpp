// SPDX-License-Identifier: Apache-2.0
// The whole run and its costs: figures beside the verdict, and a section.
#include "report/html/run_section.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "report/html/bar_line.h"
#include "report/number_text.h"
#include "report/run_columns.h"
#include "report/run_report.h"

namespace stepcast::html {
namespace {

std::string days_text(double seconds) { return duration_text(Seconds(seconds)); }

std::string interval_text(const FigureRange& range, std::string (*text)(double)) {
  return range_text(text(range.low), text(range.high));
}

}  // namespace

std::vector<KeyFigure> run_figures(const RunOutlook& run) {
  const auto& length = run.forecast.length;
  if (!length) return {};
  std::vector<KeyFigure> out{
      {"Run", days_text(length->wall_s.value), interval_text(length->wall_s, days_text)}};
  if (length->dollars) {
    out.push_back({"Cost", dollars_text(length->dollars->value),
                   interval_text(*length->dollars, dollars_text)});
  } else {
    out.push_back({"Cost", "no price", "--price gives one"});
  }
  if (length->deadline_chance) {
    out.push_back({"In time", chance_text(*length->deadline_chance),
                   fmt::format("chance of {}", duration_text(*run.terms.deadline))});
  }
  if (length->budget_chance) {
    out.push_back({"In budget", chance_text(*length->budget_chance),
                   fmt::format("chance of {}", dollars_text(*run.terms.budget))});
  }
  return out;
}

std::string run_sentence(const RunOutlook& run) {
  const auto& length = run.forecast.length;
  if (!length) return "";
  std::string out = fmt::format(" The run takes {}", days_text(length->wall_s.value));
  if (length->dollars) out += fmt::format(" and {}", dollars_text(length->dollars->value));
  for (const std::string& limit : limit_texts(run)) out += fmt::format("; it {}", limit);
  return out + ".";
}

std::vector<DataCell> run_data_cells(const RunOutlook& run, bool length) {
  std::vector<DataCell> out;
  for (const RunCell& cell : run_cells(run, length)) {
    out.push_back(cell.value ? DataCell(cell.text, *cell.value) : DataCell(cell.text));
  }
  return out;
}

Section run_section(const RunOutlook& run) {
  Html body;
  for (const std::string& line : run_lines(run.terms, run.forecast)) body += paragraph(line);
  DataTable shares("wall-shares", "Where the wall time of the run goes",
                   {{"wall time"}, {"", false, false}, {"share", true}});
  for (const WallShare& share : wall_share_list(run.forecast.shares)) {
    if (share.share == 0) continue;
    shares.add_row(
        {share.label,
         DataCell(bar_line({{{0, share.share, "mark-1", share.label}}, {}, share.label})),
         {percent_text(share.share), share.share}});
  }
  body += shares.html();
  DataTable assumed("run-assumed", "What is assumed about the run",
                    {{"key"}, {"is"}, {"because", false, true, true}});
  for (const Assumption& one : run.terms.assumptions) {
    assumed.add_row({one.key, one.value, one.basis});
  }
  if (!assumed.empty()) body += folded("What is assumed", assumed.html());
  return {"run-section", "The run", body};
}

}  // namespace stepcast::html
