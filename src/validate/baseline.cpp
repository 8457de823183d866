// SPDX-License-Identifier: Apache-2.0
#include "validate/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/json.h"
#include "validate/json_lines.h"

namespace stepcast {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t kBaselineFormat = 1;
// Forecasts are the same bytes on every machine; this only forgives the last digits of the text.
constexpr double kSlack = 1e-9;
constexpr const char* kAllCases = "all";  // the row of every case

std::string key_of(const CaseResult& result) { return baseline_key(result.suite, result.id); }

ordered_json metrics_json(const SummaryRow& row) {
  ordered_json out = ordered_json::object();
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

void compare_figure(const std::string& title, const char* what, std::optional<double> before,
                    std::optional<double> now, BaselineComparison& out) {
  if (!before || !now || std::abs(*now - *before) <= kSlack * std::abs(*before)) return;
  out.changes.push_back({title, fmt::format("{} {:.6g}, was {:.6g}", what, *now, *before)});
}

void compare_cases(const std::vector<CaseResult>& cases, const Baseline& baseline,
                   BaselineComparison& out) {
  std::set<std::string> seen;
  for (const CaseResult& result : cases) {
    const std::string key = key_of(result);
    seen.insert(key);
    const auto old = baseline.cases.find(key);
    if (old == baseline.cases.end()) {
      out.changes.push_back({key, "is not in the baseline"});
    } else if (!result.failed.empty()) {
      if (!old->second.failed) out.regressions.push_back({key, "fails now: " + result.failed});
    } else if (old->second.failed) {
      out.changes.push_back({key, "is predicted now"});
    } else {
      compare_figure(key, "step_time_s", old->second.step_time_s, result.predicted->step_time_s,
                     out);
      compare_figure(key, "peak_memory_bytes", old->second.peak_memory_bytes,
                     result.predicted->peak_memory_bytes, out);
    }
  }
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
  ordered_json out;
  out["stepcast_baseline"] = kBaselineFormat;
  for (const std::string& name : baseline_rows(report.summary)) {
    out["summary"][name] = metrics_json(*row_of(report.summary, name));
  }
  std::map<std::string, ordered_json> cases;  // sorted, whatever order the suites were named in
  for (const CaseResult& result : report.cases) {
    ordered_json& entry = cases[key_of(result)];
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
