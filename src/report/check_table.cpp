// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "report/check_report.h"
#include "report/document_form.h"
#include "report/number_text.h"
#include "report/run_words.h"
#include "report/text_table.h"

namespace stepcast {
namespace {

constexpr std::size_t kWorstCases = 10;
constexpr std::size_t kReasons = 12;
constexpr std::size_t kChanges = 20;
constexpr std::size_t kContradictions = 40;
const std::string kSummaryTitle = "Errors of step time, peak memory and bubble";
const Written kSummaryWords =
    "covered: how many runs lay in the interval of their forecast, which should hold nine of ten\n"
    "tau: how well forecasts order the runs of one group by speed; 1 is the same order\n"
    "regret: how much slower the run that forecasts choose is than the fastest of its group\n";

const JudgedFigure& judged(std::string_view name) {
  return *std::ranges::find(judged_figures(), name, &JudgedFigure::name);
}

std::string percent(std::optional<double> value) { return value ? percent_text(*value) : ""; }

std::string error_percent(const ErrorStatistics& errors, double ErrorStatistics::*figure) {
  return errors.count > 0 ? percent_text(errors.*figure) : "";
}

std::string bias_percent(const ErrorStatistics& errors) {
  return errors.bias ? signed_percent_text(*errors.bias) : "";
}

void add_summary_row(TextTable& table, const std::string& name, const SummaryRow& row,
                     bool with_unsupported) {
  std::vector<std::string> cells{name, fmt::format("{}", row.count), fmt::format("{}", row.failed)};
  if (with_unsupported) cells.push_back(fmt::format("{}", row.not_supported));
  const std::vector<std::string> figures{
      error_percent(row.step_time, &ErrorStatistics::mean_abs),
      error_percent(row.step_time, &ErrorStatistics::median_abs),
      error_percent(row.step_time, &ErrorStatistics::p90_abs),
      error_percent(row.step_time, &ErrorStatistics::max_abs),
      bias_percent(row.step_time),
      percent(row.coverage),
      row.kendall_tau ? fmt::format("{:.3f}", *row.kendall_tau) : "",
      percent(row.regret),
      error_percent(row.peak_memory, &ErrorStatistics::mean_abs),
      bias_percent(row.peak_memory),
      row.bubble_fraction.count > 0 ? fmt::format("{:.3f}", row.bubble_fraction.mean_abs) : ""};
  cells.insert(cells.end(), figures.begin(), figures.end());
  table.add_row(std::move(cells));
}

// A row whose cases are collectives alone has no figure of a step.
bool is_of_steps(const SummaryRow& row) {
  return row.collective_time.count < row.count || row.count == 0;
}

TextTable summary_table(const Summary& summary, bool tags) {
  const bool unsupported =
      summary.all.not_supported > 0 || (summary.fitted && summary.fitted->not_supported > 0);
  std::vector<Column> columns{{"cases", Align::kLeft}, {"count"}, {"failed"}};
  if (unsupported) columns.push_back({"not supported"});
  for (const char* figure : {"time mean", "median", "p90", "max", "bias", "covered", "tau",
                             "regret", "memory mean", "bias", "bubble"}) {
    columns.push_back({figure});
  }
  TextTable table(columns);
  const auto add = [&](const std::string& name, const SummaryRow& row) {
    add_summary_row(table, name, row, unsupported);
  };
  add("all", summary.all);
  add("nothing assumed", summary.nothing_assumed);
  for (const auto& [name, row] : summary.suites) {
    if (is_of_steps(row)) add(name, row);
  }
  if (tags) {
    for (const auto& [name, row] : summary.tags) {
      if (is_of_steps(row)) add("tag " + name, row);
    }
  }
  if (summary.fitted) add("fitted (in no other row)", *summary.fitted);
  return table;
}

// Collectives by vendor and network and by size, as the median hides neither in the other.
TextTable collective_table(const CheckReport& report, bool tags) {
  std::map<std::string, std::map<std::string, std::vector<const CaseResult*>>> rows;
  for (const CaseResult& result : report.cases) {
    if (!result.collective) continue;
    const char* size = is_long_message(result.collective->bytes) ? "16 MiB and more" : "smaller";
    rows[result.collective->fabric][size].push_back(&result);
    rows["all"][size].push_back(&result);
    if (!tags) continue;
    for (const std::string& tag : result.tags) rows["tag " + tag][size].push_back(&result);
  }
  TextTable table({{"fabric", Align::kLeft},
                   {"size", Align::kLeft},
                   {"times"},
                   {"failed"},
                   {"median"},
                   {"mean"},
                   {"max"},
                   {"bias"},
                   {"algorithm right"}});
  for (const auto& [fabric, sizes] : rows) {
    for (const auto& [size, cases] : sizes) {
      const SummaryRow row = summarise(cases);
      const ErrorStatistics& errors = row.collective_time;
      table.add_row({fabric, size, fmt::format("{}", row.count), fmt::format("{}", row.failed),
                     error_percent(errors, &ErrorStatistics::median_abs),
                     error_percent(errors, &ErrorStatistics::mean_abs),
                     error_percent(errors, &ErrorStatistics::max_abs), bias_percent(errors),
                     percent(row.algorithms)});
    }
  }
  return table;
}

// The largest errors first: of all cases, or so many of each suite.
TextTable worst_table(const CheckReport& report, std::size_t of_each_suite,
                      const JudgedFigure& figure) {
  const auto error_of = [&](const CaseResult& result) { return result.errors.*figure.error; };
  std::vector<const CaseResult*> worst;
  for (const CaseResult& result : report.cases) {
    if (error_of(result)) worst.push_back(&result);
  }
  std::stable_sort(worst.begin(), worst.end(), [&](const CaseResult* a, const CaseResult* b) {
    if (of_each_suite > 0 && a->suite != b->suite) return a->suite < b->suite;
    return std::abs(*error_of(*a)) > std::abs(*error_of(*b));
  });
  TextTable table(
      {{"suite", Align::kLeft}, {"case", Align::kLeft}, {"predicted"}, {"measured"}, {"error"}});
  std::map<std::string, std::size_t> shown;  // by suite; all in one where suites do not count
  for (const CaseResult* result : worst) {
    const std::size_t limit = of_each_suite > 0 ? of_each_suite : kWorstCases;
    if (shown[of_each_suite > 0 ? result->suite : ""]++ >= limit) continue;
    table.add_row({result->suite, result->id,
                   time_text(Seconds(*((*result->predicted).*figure.value))),
                   time_text(Seconds(*(result->measured.*figure.value))),
                   signed_percent_text(*error_of(*result))});
  }
  return table;
}

// The reasons for which a case failed.
std::vector<std::string> reasons_of(const CaseResult& result) {
  std::vector<std::string> out;
  const std::string& text = result.failed;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find("; ", begin), text.size());
    out.push_back(text.substr(begin, end - begin));
    begin = end + 2;
  }
  return out;
}

// Reasons by the number of cases that fail for them, the most frequent first.
TextTable failure_table(const CheckReport& report, bool not_supported) {
  std::map<std::string, std::vector<const CaseResult*>> reasons;
  for (const CaseResult& result : report.cases) {
    if (result.not_supported != not_supported) continue;
    for (const std::string& reason : reasons_of(result)) reasons[reason].push_back(&result);
  }
  std::vector<std::pair<std::string, std::vector<const CaseResult*>>> sorted(reasons.begin(),
                                                                             reasons.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  TextTable table({{"cases"}, {"for example", Align::kLeft}, {"reason", Align::kLeft}});
  for (std::size_t i = 0; i < std::min(sorted.size(), kReasons); ++i) {
    const auto& [reason, cases] = sorted[i];
    table.add_row({fmt::format("{}", cases.size()), cases.front()->id, reason});
  }
  if (sorted.size() > kReasons) {
    table.add_row({"", "", fmt::format("and {} other reasons", sorted.size() - kReasons)});
  }
  return table;
}

// Recorded runs of which the forecast says that they cannot be, or those that ran out of memory
// although it is sure that they fit.
TextTable contradiction_table(const CheckReport& report, bool out_of_memory) {
  TextTable table({{"suite", Align::kLeft}, {"case", Align::kLeft}, {"forecast", Align::kLeft}});
  std::size_t all = 0;
  for (const CaseResult& result : report.cases) {
    if (!result.contradiction || result.measured.out_of_memory != out_of_memory) continue;
    if (all++ < kContradictions) {
      table.add_row({result.suite, result.id, name_of(*result.contradiction)});
    }
  }
  if (all > kContradictions) {
    table.add_row({"", fmt::format("and {} more", all - kContradictions), ""});
  }
  return table;
}

TextTable finding_table(const std::vector<Finding>& findings, std::size_t limit) {
  TextTable table({{"what", Align::kLeft}, {"found", Align::kLeft}});
  for (std::size_t i = 0; i < std::min(findings.size(), limit); ++i) {
    table.add_row({findings[i].title, findings[i].message});
  }
  if (findings.size() > limit) {
    table.add_row({fmt::format("and {} more", findings.size() - limit), ""});
  }
  return table;
}

struct Section {
  std::string title;
  TextTable table;
};

// Says nothing if there was no limit to keep.
std::string verdict(const CheckReport& report, const GateOutcome& gate) {
  if (!gate.closed) return "";
  const auto counted = [](std::size_t count, const char* what) {
    return counted_text(static_cast<std::int64_t>(count), what);
  };
  std::string out = gate.broken.empty() ? "passed: " + counted(report.cases.size(), "case")
                                        : "failed: " + counted(gate.broken.size(), "finding");
  if (!gate.baseline.empty()) {
    out +=
        fmt::format(", {} against {}", counted(gate.changes.size(), "other change"), gate.baseline);
  }
  return out;
}

// The three questions of a gate, each with its answer.
std::vector<std::string> answers(const GateOutcome& gate) {
  if (gate.runs.empty()) return {};
  return {"runs against those before: " + runs_line(gate.runs),
          "forecasts against the baseline: " +
              (gate.baseline.empty() ? "there is none"
               : gate.drifts == 0
                   ? "not worse"
                   : counted_text(static_cast<std::int64_t>(gate.drifts), "figure") + " worse"),
          "runs beside their forecasts: " + forecasts_line(gate.runs)};
}

// Runs within their limits: the others are among what broke and what changed.
TextTable run_table(const std::vector<RunVerdict>& runs) {
  TextTable table({{"case", Align::kLeft}, {"step time against the run before", Align::kLeft}});
  for (const RunVerdict& run : runs) {
    if (run.state == RunState::kSame) table.add_row({run.key, run_words(run)});
  }
  return table;
}

std::vector<Section> sections(const CheckReport& report, const GateOutcome& gate,
                              const CheckView& view) {
  std::vector<Section> out;
  const auto add = [&](std::string title, TextTable table) {
    if (!table.empty()) out.push_back({std::move(title), std::move(table)});
  };
  const SummaryRow& every = report.summary.all;
  if (is_of_steps(every) || report.summary.fitted) {
    add(kSummaryTitle, summary_table(report.summary, view.tags));
  }
  add("Errors of collectives", collective_table(report, view.tags));
  if (!view.summary_only) {
    add("Largest errors of step time", worst_table(report, view.worst, judged("step_time")));
    add("Largest errors of collectives",
        worst_table(report, view.worst, judged("collective_time")));
    add("Not predicted, by reason (each case counts as an error of 100 %)",
        failure_table(report, false));
    add("Not supported yet, by reason (in no error)", failure_table(report, true));
  }
  // These are no part of the summary: a run needs no more to be recorded than that it ran.
  if (!view.summary_only) {
    add("These ran for real, although the forecast says that they are illegal or do not fit",
        contradiction_table(report, false));
    const auto trials = std::ranges::count_if(
        report.cases, [](const CaseResult& result) { return result.measured.out_of_memory; });
    add(fmt::format("Of {} that ran out of memory, these fit by the forecast",
                    counted_text(trials, "run")),
        contradiction_table(report, true));
  }
  if (!view.summary_only && gate.runs.size() <= kChanges)
    add("As fast as before", run_table(gate.runs));
  add("Changed against the baseline", finding_table(gate.changes, kChanges));
  add("Broken limits and regressions", finding_table(gate.broken, gate.broken.size()));
  return out;
}

}  // namespace

Written check_table(const CheckReport& report, const GateOutcome& gate, const CheckView& view) {
  Written out;
  for (const Section& section : sections(report, gate, view)) {
    out += (out.empty() ? Written() : Written("\n")) + line(section.title, Form::kText) +
           section.table.text();
    if (section.title == kSummaryTitle) out += kSummaryWords;
  }
  if (const std::string words = verdict(report, gate); !words.empty()) {
    out += "\n";
    for (const std::string& answer : answers(gate)) out += line(answer, Form::kText);
    out += line(words, Form::kText);
  }
  return out;
}

Written check_markdown(const CheckReport& report, const GateOutcome& gate, const CheckView& view) {
  Written out;
  if (const std::string words = verdict(report, gate); !words.empty()) {
    out = strong_line(words, Form::kMarkdown) + "\n";
    for (const std::string& answer : answers(gate)) out += bullet(answer, Form::kMarkdown);
    if (!gate.runs.empty()) out += "\n";
  }
  // The first heading begins the document where there is no verdict.
  const auto headed = [&](const Section& section) {
    return "### " + line(section.title, Form::kMarkdown) + "\n" + section.table.markdown();
  };
  bool first = true;
  for (const Section& section : sections(report, gate, view)) {
    if (!std::exchange(first, false)) out += "\n";
    out += headed(section);
  }
  return out;
}

Written check_csv(const CheckReport& report) {
  TextTable table({{"suite"},
                   {"id"},
                   {"failed"},
                   {"fitted"},
                   {"nothing_assumed"},
                   {"predicted_step_time_s"},
                   {"predicted_step_time_low_s"},
                   {"predicted_step_time_high_s"},
                   {"measured_step_time_s"},
                   {"step_time_error"},
                   {"predicted_peak_memory_bytes"},
                   {"measured_peak_memory_bytes"},
                   {"peak_memory_error"},
                   {"predicted_bubble_fraction"},
                   {"measured_bubble_fraction"},
                   {"bubble_fraction_difference"},
                   {"predicted_collective_time_s"},
                   {"measured_collective_time_s"},
                   {"collective_time_error"},
                   {"algorithm"}});
  const auto cell = [](std::optional<double> value) { return value ? exact_text(*value) : ""; };
  for (const CaseResult& result : report.cases) {
    const CaseFigures predicted = result.predicted.value_or(CaseFigures());
    const CaseErrors& errors = result.errors;
    table.add_row({result.suite,
                   result.id,
                   result.failed,
                   result.fitted ? "true" : "false",
                   result.nothing_assumed ? "true" : "false",
                   cell(predicted.step_time_s),
                   cell(predicted.step_time_low_s),
                   cell(predicted.step_time_high_s),
                   cell(result.compared_step_time_s()),
                   cell(errors.step_time),
                   cell(predicted.peak_memory_bytes),
                   cell(result.measured.peak_memory_bytes),
                   cell(errors.peak_memory),
                   cell(predicted.bubble_fraction),
                   cell(result.measured.bubble_fraction),
                   cell(errors.bubble_fraction),
                   cell(predicted.collective_time_s),
                   cell(result.measured.collective_time_s),
                   cell(errors.collective_time),
                   result.collective ? result.collective->algorithm : ""});
  }
  return table.csv();
}

}  // namespace stepcast
