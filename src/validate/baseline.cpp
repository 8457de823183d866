// SPDX-License-Identifier: Apache-2.0
#include "validate/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "core/json.h"
#include "core/json_tree.h"
#include "validate/json_lines.h"

namespace stepcast {
namespace {

constexpr std::int64_t kBaselineFormat = 1;
// Forecasts are the same bytes on every machine; this only forgives the last digits of the text.
constexpr double kSlack = 1e-9;
constexpr const char* kAllCases = "all";  // the row of every case

std::string key_of(const CaseResult& result) { return baseline_key(result.suite, result.id); }

Json metrics_json(const SummaryRow& row) {
  Json out = Json::object();
  for (const std::string& name : metric_names()) {
    if (const auto value = metric_of(row, name)) out[name] = *value;
  }
  return out;
}

// Rows of the baseline: tags are views of the same cases and would only repeat them.
std::vector<std::string> baseline_rows(const Summary& summary) {
  std::vector<std::string> out{kAllCases};
  for (const auto& [name, row] : summary.suites) out.push_back(name);
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

void compare_rows(const Summary& summary, const Baseline& baseline, BaselineComparison& out) {
  for (const auto& [name, metrics] : baseline.rows) {
    const SummaryRow* row = row_of(summary, name);
    if (!row) {
      out.regressions.push_back({name, "is in the baseline and was not checked"});
      continue;
    }
    for (const auto& [metric, before] : metrics) {
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
                     result.measured_step_time_s, one);
      compare_figure("peak_memory_bytes", old->second.peak_memory_bytes,
                     result.predicted->peak_memory_bytes, result.measured.peak_memory_bytes, one);
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
  Json out;
  out["stepcast_baseline"] = kBaselineFormat;
  for (const std::string& name : baseline_rows(report.summary)) {
    out["summary"][name] = metrics_json(*row_of(report.summary, name));
  }
  std::map<std::string, Json> cases;  // sorted, whatever order the suites were named in
  for (const CaseResult& result : report.cases) {
    Json& entry = cases[key_of(result)];
    if (result.predicted) {
      entry["step_time_s"] = result.predicted->step_time_s;
      entry["peak_memory_bytes"] = result.predicted->peak_memory_bytes;
    } else {
      entry["failed"] = result.failed;
    }
  }
  out["cases"] = cases;
  return json_lines(out);
}

Result<Baseline> read_baseline(const std::string& text, const std::string& file,
                               const std::vector<std::string>& suites) {
  auto parsed = JsonDocument::parse(text, file);
  if (!parsed) return failure(parsed.error());
  JsonDocument& document = **parsed;
  ObjectReader reader(document.root());
  if (reader.has(kValidationBaselineKey)) {
    reader.fail(kValidationBaselineKey, ErrorCode::kFormat, "is a baseline of validate, not check");
    return failure(document.errors());
  }
  const auto format = reader.required(kBaselineKey);
  if (format && (!format->raw().is_number() || format->raw() != kBaselineFormat)) {
    reader.fail(kBaselineKey, ErrorCode::kFormat, format->dump() + " is not a format that is read",
                fmt::format("format {}", kBaselineFormat));
    return failure(document.errors());
  }
  Baseline out;
  if (const auto rows = reader.required("summary"); rows && rows->is_object()) {
    ObjectReader row_reader(*rows);
    for (const auto& [name, unused] : rows->raw().items()) {
      const auto row = row_reader.value(name);
      if (!row) continue;
      auto& figures = out.rows[name];  // none where every case has failed
      ObjectReader metrics(*row);
      for (const std::string& metric : metric_names()) {
        if (const auto value = metrics.number(metric, -1e300, 1e300)) {
          figures[metric] = *value;
        }
      }
      metrics.finish();
    }
  }
  if (const auto cases = reader.required("cases"); cases && cases->is_object()) {
    ObjectReader case_reader(*cases);
    for (const auto& [name, unused] : cases->raw().items()) {
      const auto value = case_reader.value(name);
      if (!value) continue;
      ObjectReader entry(*value);
      Baseline::Case& old = out.cases[name];
      old.step_time_s = entry.number("step_time_s", 0, 1e300);
      old.peak_memory_bytes = entry.number("peak_memory_bytes", 0, 1e300);
      old.failed = entry.text("failed").has_value();
      entry.finish();
    }
  }
  reader.finish();
  if (!document.ok()) return failure(document.errors());
  if (Errors other = no_suite_in_common(suites, out, file); !other.empty()) {
    return failure(std::move(other));
  }
  return out;
}

BaselineComparison compare_with_baseline(const CheckReport& report, const Baseline& baseline) {
  BaselineComparison out;
  compare_rows(report.summary, baseline, out);
  compare_cases(report.cases, baseline, out);
  return out;
}

}  // namespace stepcast
