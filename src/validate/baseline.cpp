// SPDX-License-Identifier: Apache-2.0
#include "validate/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include "core/row_types.h"
#include "core/write_rows.h"

#include "core/json_tree.h"
#include "validate/baseline_document.h"
#include "validate/json_lines.h"

namespace stepcast {
namespace {

// Forecasts are the same bytes on every machine; this only forgives the last digits of the text.
constexpr double kSlack = 1e-9;
constexpr const char* kAllCases = "all";  // the row of every case

std::string key_of(const CaseResult& result) { return baseline_key(result.suite, result.id); }

// Keeps what a later check holds a run against; a throughput has become a step time.
CaseFigures recorded(const CaseFigures& measured) {
  CaseFigures out;
  out.out_of_memory = measured.out_of_memory;
  for (const auto figure : {&CaseFigures::step_time_s, &CaseFigures::step_time_spread,
                            &CaseFigures::steps, &CaseFigures::peak_memory_bytes,
                            &CaseFigures::bubble_fraction, &CaseFigures::collective_time_s}) {
    out.*figure = measured.*figure;
  }
  return out;
}

// Tags have no row: they are views of the same cases and would only repeat them.
Baseline baseline_of(const CheckReport& report) {
  Baseline out;
  const auto add_row = [&](const std::string& name, const SummaryRow& row) {
    auto& figures = out.rows[name];
    for (const std::string& metric : metric_names()) {
      if (const auto value = metric_of(row, metric)) figures[metric] = *value;
    }
  };
  add_row(kAllCases, report.summary.all);
  for (const auto& [name, row] : report.summary.suites) add_row(name, row);
  for (const CaseResult& result : report.cases) {
    Baseline::Case& one = out.cases[key_of(result)];
    if (result.predicted) {
      one.step_time_s = result.predicted->step_time_s;
      one.peak_memory_bytes = result.predicted->peak_memory_bytes;
      one.collective_time_s = result.predicted->collective_time_s;
      one.measured = recorded(result.measured);
      one.work = result.work;
      if (!result.fingerprint.empty()) one.scenario = result.fingerprint;
    } else {
      one.failed = result.failed;
    }
  }
  return out;
}

// How much worse `now` is than `before`; negative when better.
double worsening(std::string_view metric, double before, double now) {
  return larger_is_better(metric) ? before - now : std::abs(now) - std::abs(before);
}

// A baseline of other suites would call each of them gone: that is the wrong file.
Errors no_suite_in_common(const std::vector<std::string>& suites, const Baseline& baseline,
                          const std::string& file) {
  std::vector<std::string> recorded;
  for (const auto& [name, unused] : baseline.rows) {
    if (name == kAllCases) continue;
    if (std::ranges::find(suites, name) != suites.end()) return {};
    recorded.push_back(name);
  }
  if (recorded.empty()) return {};
  return {{ErrorCode::kIllegal,
           fmt::format("is of other suites: {}; checked: {}", fmt::join(recorded, ", "),
                       fmt::join(suites, ", ")),
           file, "summary", "name the baseline of these suites, or a new file with --update"}};
}

// Which figures of rows follow from what a baseline has of its cases: it has neither intervals nor
// bubbles nor groups.
bool follows_from_cases(std::string_view metric) {
  return metric.starts_with("step_time.") || metric.starts_with("peak_memory.") ||
         metric.starts_with("collective_time.") || metric == "failed" || metric == "not_supported";
}

void compare_rows(const Summary& summary, const Baseline& baseline, bool all_figures,
                  BaselineComparison& out) {
  for (const auto& [name, metrics] : baseline.rows) {
    const SummaryRow* row = row_of(summary, name);
    if (!row) {
      out.regressions.push_back({name, "is in the baseline and was not checked"});
      continue;
    }
    for (const auto& [metric, before] : metrics) {
      if (!all_figures && !follows_from_cases(metric)) continue;
      const auto now = metric_of(*row, metric);
      const std::string title = fmt::format("{}: {}", name, metric);
      if (!now) {
        out.regressions.push_back({title, fmt::format("was {:.6g} and is gone", before)});
        continue;
      }
      const double worse = worsening(metric, before, *now);
      const std::string message = fmt::format("{:.6g}, was {:.6g}", *now, before);
      if (worse > kSlack) out.regressions.push_back({title, message});
      if (worse < -kSlack) out.changes.push_back({title, message});
    }
  }
}

bool has_other_scenario(const CaseResult& result, const Baseline::Case& was) {
  return was.scenario && *was.scenario != result.fingerprint;
}

// The cases that the baseline has, beside what was measured then.
std::vector<CaseResult> as_measured_then(const std::vector<CaseResult>& cases,
                                         const Baseline& baseline) {
  std::vector<CaseResult> out;
  for (const CaseResult& result : cases) {
    const auto was = baseline.cases.find(key_of(result));
    if (was == baseline.cases.end()) continue;
    CaseResult& one = out.emplace_back(result);
    if (!was->second.measured) continue;
    for (const JudgedFigure& figure : judged_figures()) {
      one.measured.*figure.value = (*was->second.measured).*figure.value;
    }
    one.compare();
  }
  return out;
}

// The cases, with the forecasts of the baseline for those whose scenario is another since: rows of
// the others are compared all the same.
struct OldForecasts {
  std::vector<CaseResult> cases;
  std::size_t replaced = 0;
  bool rows_known = true;  // no case of another scenario could not be predicted
};
OldForecasts with_old_forecasts(const std::vector<CaseResult>& then, const Baseline& baseline) {
  OldForecasts out{then};
  for (CaseResult& one : out.cases) {
    const Baseline::Case& was = baseline.cases.at(key_of(one));
    if (!has_other_scenario(one, was)) continue;
    ++out.replaced;
    if (!was.step_time_s && !was.collective_time_s) {
      out.rows_known = false;
      continue;
    }
    one.failed.clear();
    one.not_supported = false;
    one.predicted = CaseFigures{.step_time_s = was.step_time_s,
                                .step_time_low_s = was.step_time_s,
                                .step_time_high_s = was.step_time_s,
                                .peak_memory_bytes = was.peak_memory_bytes,
                                .collective_time_s = was.collective_time_s};
    one.compare();
  }
  return out;
}

// A case whose forecast changed.
struct ChangedCase {
  Finding finding;
  double cost = 0;    // how much its error grew, of step time or memory, whichever grew more
  bool lost = false;  // it was predicted and is not any more: worse whatever the summary says
};

// `measured` is what both forecasts are about; without it no error is told.
void compare_figure(const char* what, std::optional<double> before, std::optional<double> now,
                    std::optional<double> measured, ChangedCase& out) {
  if (!before || !now || std::abs(*now - *before) <= kSlack * std::abs(*before)) return;
  std::string& text = out.finding.message;
  text += fmt::format("{}{} {:.6g}, was {:.6g}", text.empty() ? "" : "; ", what, *now, *before);
  if (!measured) return;
  const double error = *now / *measured - 1, old_error = *before / *measured - 1;
  text += fmt::format(" (error {:+.1f} %, was {:+.1f} %)", 100 * error, 100 * old_error);
  out.cost = std::max(out.cost, std::abs(error) - std::abs(old_error));
}

// Puts first what got worse, by what it costs, if the summary got worse with it: otherwise it is a
// change that others made up for.
void add_changed(std::vector<ChangedCase> changed, BaselineComparison& out) {
  std::stable_sort(changed.begin(), changed.end(),
                   [](const ChangedCase& a, const ChangedCase& b) { return a.cost > b.cost; });
  const bool summary_is_worse = !out.regressions.empty();
  std::vector<Finding> worse;
  for (ChangedCase& one : changed) {
    const bool counts = one.lost || (one.cost > kSlack && summary_is_worse);
    (counts ? worse : out.changes).push_back(std::move(one.finding));
  }
  out.regressions.insert(out.regressions.begin(), worse.begin(), worse.end());
}

void compare_cases(const std::vector<CaseResult>& cases, const Baseline& baseline,
                   BaselineComparison& out) {
  std::set<std::string> seen;
  std::vector<ChangedCase> changed;
  for (const CaseResult& result : cases) {
    const std::string key = key_of(result);
    seen.insert(key);
    const auto old = baseline.cases.find(key);
    if (old == baseline.cases.end()) {
      out.changes.push_back({key, "is not in the baseline"});
    } else if (has_other_scenario(result, old->second)) {
      out.changes.push_back({key, "has another scenario, so that its forecasts are not compared"});
    } else if (!result.failed.empty()) {
      const char* how = result.not_supported ? "is not supported now: " : "fails now: ";
      if (!old->second.failed) {
        changed.push_back({{key, how + result.failed}, std::numeric_limits<double>::max(), true});
      }
    } else if (old->second.failed) {
      out.changes.push_back({key, "is predicted now"});
    } else {
      ChangedCase one{{key, ""}, 0};
      compare_figure("step_time_s", old->second.step_time_s, result.predicted->step_time_s,
                     result.measured.step_time_s, one);
      compare_figure("peak_memory_bytes", old->second.peak_memory_bytes,
                     result.predicted->peak_memory_bytes, result.measured.peak_memory_bytes, one);
      compare_figure("collective_time_s", old->second.collective_time_s,
                     result.predicted->collective_time_s, result.measured.collective_time_s, one);
      if (!one.finding.message.empty()) changed.push_back(std::move(one));
    }
  }
  add_changed(std::move(changed), out);
  for (const auto& [key, unused] : baseline.cases) {
    if (!seen.contains(key)) {
      out.regressions.push_back({key, "is in the baseline and was not checked"});
    }
  }
}

}  // namespace

std::string baseline_key(const std::string& suite, const std::string& id) {
  return suite + "/" + id;
}

Written baseline_text(const CheckReport& report) {
  Json out{{kBaselineKey, kBaselineFormat}};
  out.update(json_of(baseline_of(report)));
  return json_lines(out);
}

Result<Baseline> read_baseline(const std::string& text, const std::string& file,
                               const std::vector<std::string>& suites) {
  auto out = read_baseline_document<Baseline>(text, file, kBaselineKey, kValidationBaselineKey,
                                              "is a baseline of validate, not check");
  if (!out) return out;
  if (Errors other = no_suite_in_common(suites, *out, file); !other.empty()) {
    return failure(std::move(other));
  }
  return out;
}

BaselineComparison compare_with_baseline(const CheckReport& report, const Baseline& baseline) {
  BaselineComparison out;
  const std::vector<CaseResult> then = as_measured_then(report.cases, baseline);
  const auto with_old = with_old_forecasts(then, baseline);
  if (with_old.rows_known) {
    compare_rows(summarise(with_old.cases), baseline, with_old.replaced == 0, out);
  }
  std::vector<CaseResult> all = then;
  for (const CaseResult& one : report.cases) {
    if (!baseline.cases.contains(key_of(one))) all.push_back(one);
  }
  compare_cases(all, baseline, out);
  return out;
}

Rows Baseline::Case::fields() {
  static constexpr Row all[] = {row<&Case::step_time_s>("step_time_s"),
                                row<&Case::peak_memory_bytes>("peak_memory_bytes"),
                                row<&Case::collective_time_s>("collective_time_s"),
                                row<&Case::failed>("failed"),
                                row<&Case::measured>("measured"),
                                row<&Case::work>("work"),
                                row<&Case::scenario>("scenario")};
  return rows_of<Case>(all);
}

Rows Baseline::fields() {
  using F = Baseline;
  static constexpr Row all[] = {
      row<&F::rows>("summary").required().named(metric_names).within(-1e300, 1e300),
      row<&F::cases>("cases").required()};
  return rows_of<F>(all);
}

}  // namespace stepcast
