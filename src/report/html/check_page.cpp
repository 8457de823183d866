// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "report/check_report.h"
#include "report/html/data_table.h"
#include "report/html/histogram.h"
#include "report/html/page.h"
#include "report/html/scatter.h"
#include "report/html/time_axis.h"
#include "report/number_text.h"

namespace stepcast {
namespace {

using namespace html;

constexpr double kBand = 0.10;  // drawn around the diagonal

DataCell percent_cell(std::optional<double> value, bool with_sign = false) {
  if (!value) return "";
  return {with_sign ? signed_percent_text(*value) : percent_text(*value), *value};
}

DataCell figure_cell(const ErrorStatistics& errors, double ErrorStatistics::*figure) {
  return errors.count > 0 ? percent_cell(errors.*figure) : "";
}

void add_summary_row(DataTable& table, const std::string& name, const SummaryRow& row) {
  table.add_row(
      {name,
       {fmt::format("{}", row.count), static_cast<double>(row.count)},
       {fmt::format("{}", row.failed), static_cast<double>(row.failed)},
       {fmt::format("{}", row.not_supported), static_cast<double>(row.not_supported)},
       figure_cell(row.step_time, &ErrorStatistics::mean_abs),
       figure_cell(row.step_time, &ErrorStatistics::median_abs),
       figure_cell(row.step_time, &ErrorStatistics::p90_abs),
       percent_cell(row.step_time.bias, true),
       percent_cell(row.coverage),
       row.kendall_tau ? DataCell(fmt::format("{:.3f}", *row.kendall_tau), *row.kendall_tau) : "",
       percent_cell(row.regret),
       figure_cell(row.peak_memory, &ErrorStatistics::mean_abs),
       percent_cell(row.peak_memory.bias, true),
       figure_cell(row.collective_time, &ErrorStatistics::median_abs),
       percent_cell(row.algorithms)});
}

std::vector<DataColumn> summary_columns(const char* what) {
  return {{what},
          {"count", true},
          {"failed", true},
          {"not supported", true},
          {"mean", true},
          {"median", true},
          {"p90", true},
          {"bias", true},
          {"covered", true},
          {"tau", true},
          {"regret", true},
          {"memory mean", true},
          {"memory bias", true},
          {"collectives, median", true},
          {"algorithm right", true}};
}

Section summary_section(const Summary& summary) {
  DataTable table("summary", "Absolute errors of step time, and of peak memory where it says so",
                  summary_columns("cases"));
  add_summary_row(table, "all", summary.all);
  add_summary_row(table, "nothing assumed", summary.nothing_assumed);
  for (const auto& [name, row] : summary.suites) add_summary_row(table, name, row);
  if (summary.fitted) add_summary_row(table, "fitted (in no other row)", *summary.fitted);
  Html body = table.html();
  if (!summary.tags.empty()) {
    DataTable tags("tags", "The same by tag", summary_columns("tag"));
    for (const auto& [name, row] : summary.tags) add_summary_row(tags, name, row);
    body += folded("By tag", tags.html());
  }
  return {"summary-section", "Errors", body};
}

// A step's time, or that of a collective by itself.
struct ComparedTime {
  double predicted_s, measured_s, error;
};
std::optional<ComparedTime> compared_time(const CaseResult& result) {
  const auto value =
      result.collective ? &CaseFigures::collective_time_s : &CaseFigures::step_time_s;
  const auto error = result.collective ? result.errors.collective_time : result.errors.step_time;
  if (!error) return std::nullopt;
  return ComparedTime{*((*result.predicted).*value), *(result.measured.*value), *error};
}

Section scatter_section(const CheckReport& report) {
  std::map<std::string, ScatterSeries> by_suite;
  std::vector<double> errors;
  for (const CaseResult& result : report.cases) {
    const auto time = compared_time(result);
    if (!time) continue;
    errors.push_back(time->error);
    ScatterSeries& series = by_suite[result.suite];
    series.label = result.suite;
    series.points.push_back(
        {time->measured_s, time->predicted_s,
         fmt::format("{}: {} predicted, {} measured ({})", result.id,
                     time_text(Seconds(time->predicted_s)), time_text(Seconds(time->measured_s)),
                     signed_percent_text(time->error))});
  }
  Scatter scatter;
  scatter.label = fmt::format("Predicted against measured time of {} cases", errors.size());
  scatter.x = {"measured time", ValueAxis::Scale::kLogarithmic, tick_text};
  scatter.y = {"predicted time", ValueAxis::Scale::kLogarithmic, tick_text};
  scatter.diagonal = true;
  scatter.band = kBand;
  for (auto& [name, series] : by_suite) scatter.series.push_back(std::move(series));
  if (errors.empty()) {
    return {"scatter", "Predicted against measured",
            paragraph("No case was predicted that has a measured time.")};
  }
  return {"scatter", "Predicted against measured",
          scatter_chart(scatter) +
              note("On the line both are equal; the band is 10 % to either side.") +
              element("h3", {}, "Errors of time") +
              error_histogram(errors, "Histogram of the errors of time")};
}

DataCell time_cell(std::optional<double> seconds) {
  if (!seconds) return "";
  return {time_text(Seconds(*seconds)), *seconds};
}

DataCell memory_cell(std::optional<double> bytes) {
  if (!bytes) return "";
  return {gib_text(static_cast<ByteCount>(std::llround(*bytes))), *bytes};
}

std::string remark_of(const CaseResult& result) {
  std::string out = result.failed;
  const auto add = [&](const char* more) { out += (out.empty() ? "" : "; ") + std::string(more); };
  if (result.covered && !*result.covered) add("outside its interval");
  if (result.fitted) add("the profile was fitted on it");
  if (!result.nothing_assumed) add("something assumed");
  return out;
}

Section case_section(const CheckReport& report) {
  DataTable table("cases", "Every case: time, and peak memory in GiB",
                  {{"case"},
                   {"suite"},
                   {"predicted", true},
                   {"measured", true},
                   {"error", true},
                   {"memory predicted", true},
                   {"measured", true},
                   {"error", true},
                   {"remark", false, true, true}});
  for (const CaseResult& result : report.cases) {
    const CaseFigures predicted = result.predicted.value_or(CaseFigures());
    const auto time = compared_time(result);
    table.add_row(
        {result.id, result.suite,
         time_cell(time ? std::optional(time->predicted_s) : predicted.step_time_s),
         time_cell(time ? std::optional(time->measured_s) : result.compared_step_time_s()),
         percent_cell(time ? std::optional(time->error) : std::nullopt, true),
         memory_cell(predicted.peak_memory_bytes), memory_cell(result.measured.peak_memory_bytes),
         percent_cell(result.errors.peak_memory, true), remark_of(result)},
        result.failed.empty() ? "" : "failed");
  }
  return {"case-section", "Cases", table.html({true, true, true})};
}

Section finding_section(const char* id, const char* title, const std::vector<Finding>& findings) {
  DataTable table(id, title, {{"what"}, {"found"}});
  for (const Finding& finding : findings) table.add_row({finding.title, finding.message});
  return {std::string(id) + "-section", title, table.html()};
}

std::string verdict_sentence(const CheckReport& report, const GateOutcome& gate) {
  const SummaryRow& all = report.summary.all;
  std::string out = "No limit was given";
  if (!gate.broken.empty()) {
    out = fmt::format("{} limit{} broken", gate.broken.size(),
                      gate.broken.size() == 1 ? " is" : "s are");
  } else if (gate.closed) {
    out = "No limit is broken";
  }
  out += fmt::format(": {} of {} cases were predicted", all.count - all.failed - all.not_supported,
                     all.count);
  if (all.step_time.count > 0) {
    out +=
        fmt::format("; step time is off by {} in the median, {} in the mean",
                    percent_text(all.step_time.median_abs), percent_text(all.step_time.mean_abs));
  }
  if (all.collective_time.count > 0) {
    out += fmt::format("; collectives are off by {} in the median, {} in the mean",
                       percent_text(all.collective_time.median_abs),
                       percent_text(all.collective_time.mean_abs));
  }
  if (all.failed > 0) out += " (a case that is not predicted counts as 100 %)";
  if (all.not_supported > 0) out += fmt::format("; not supported yet: {}", all.not_supported);
  if (all.coverage) {
    out += fmt::format("; {} of the measured times lie in their interval",
                       percent_text(*all.coverage));
  }
  return out + ".";
}

std::vector<KeyFigure> figures_of(const SummaryRow& all) {
  std::vector<KeyFigure> out{{"Cases", fmt::format("{}", all.count),
                              fmt::format("{} not predicted", all.failed + all.not_supported)}};
  if (all.step_time.count > 0) {
    out.push_back({"Median error", percent_text(all.step_time.median_abs), "step time"});
    out.push_back({"p90 error", percent_text(all.step_time.p90_abs), "step time"});
  }
  if (all.collective_time.count > 0) {
    out.push_back({"Median error", percent_text(all.collective_time.median_abs), "collectives"});
  }
  if (all.step_time.bias) {
    out.push_back({"Bias", signed_percent_text(*all.step_time.bias), "of those predicted"});
  }
  if (all.coverage) {
    out.push_back({"Covered", percent_text(*all.coverage), "90 % is the aim"});
  }
  if (all.regret) {
    out.push_back({"Regret", percent_text(*all.regret), "of the layout it would choose"});
  }
  return out;
}

}  // namespace

Written check_html(const CheckReport& report, const GateOutcome& gate) {
  Page page;
  page.title = "stepcast check: predicted against recorded runs";
  std::string suites;
  for (const auto& [name, row] : report.summary.suites) {
    suites += (suites.empty() ? "" : " · ") + name;
  }
  page.subtitle = suites;
  page.mood = !gate.broken.empty() ? Mood::kBad : gate.closed ? Mood::kGood : Mood::kPlain;
  page.verdict = verdict_sentence(report, gate);
  page.figures = figures_of(report.summary.all);
  if (!gate.broken.empty()) {
    page.sections.push_back(
        finding_section("broken", "Broken limits and regressions", gate.broken));
  }
  page.sections.push_back(scatter_section(report));
  page.sections.push_back(summary_section(report.summary));
  if (!gate.changes.empty()) {
    page.sections.push_back(
        finding_section("changes", "Changed against the baseline", gate.changes));
  }
  page.sections.push_back(case_section(report));
  return page_text(page);
}

}  // namespace stepcast
