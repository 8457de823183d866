// SPDX-License-Identifier: Apache-2.0
#include "validate/tolerance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/gathered_errors.h"
#include "core/unit_text.h"

namespace stepcast {
namespace {

constexpr const char* kFlag = "--tolerance";

}  // namespace

Result<Tolerance> parse_limit(std::string_view text, const std::vector<std::string>& known,
                              std::string_view example, const std::string& flag) {
  const auto equals = text.rfind('=');
  if (equals == std::string_view::npos) {
    return failure({ErrorCode::kBadValue, fmt::format("'{}' has no limit", text), "", flag,
                    fmt::format("for example {}", example)});
  }
  Tolerance out;
  std::string_view name = text.substr(0, equals);
  if (const auto colon = name.rfind(':'); colon != std::string_view::npos) {
    out.row = name.substr(0, colon);
    name = name.substr(colon + 1);
  }
  out.metric = name;
  Errors errors;
  if (std::find(known.begin(), known.end(), out.metric) == known.end()) {
    const std::string near = did_you_mean(out.metric, known);
    errors.push_back({ErrorCode::kBadValue, fmt::format("'{}' is not a figure", out.metric), "",
                      flag, near.empty() ? "one of " + one_of(known) : near});
  }
  const auto limit = parse_fraction(text.substr(equals + 1));
  if (!limit || *limit < -1) {
    errors.push_back({ErrorCode::kBadValue,
                      fmt::format("'{}' is not a limit", text.substr(equals + 1)), "", flag,
                      "a number such as 0.10, or 10%"});
  }
  if (!errors.empty()) return failure(std::move(errors));
  out.limit = *limit;
  return out;
}

Result<Tolerance> parse_tolerance(std::string_view text) {
  return parse_limit(text, metric_names(), "step_time.mean_abs_error=0.10");
}

Result<std::vector<Tolerance>> parse_tolerances(const std::vector<std::string>& texts) {
  std::vector<Tolerance> out;
  Errors errors;
  for (const std::string& text : texts) {
    if (auto tolerance = parse_tolerance(text)) {
      out.push_back(std::move(*tolerance));
    } else {
      append(errors, tolerance.error());
    }
  }
  if (!errors.empty()) return failure(std::move(errors));
  return out;
}

Result<std::vector<Finding>> apply_tolerances(const Summary& summary,
                                              const std::vector<Tolerance>& tolerances) {
  std::vector<Finding> findings;
  Errors errors;
  for (const Tolerance& tolerance : tolerances) {
    const std::string title = fmt::format("{}: {}", tolerance.row, tolerance.metric);
    const SummaryRow* row = row_of(summary, tolerance.row);
    if (!row) {
      const std::string near = did_you_mean(tolerance.row, row_names(summary));
      errors.push_back(
          {ErrorCode::kNotFound,
           fmt::format("'{}' is neither a suite nor a tag of these cases", tolerance.row), "",
           kFlag, near});
      continue;
    }
    const auto value = metric_of(*row, tolerance.metric);
    if (!value) {
      // A gate that looks at nothing must not pass silently.
      findings.push_back({title, "no case gives this figure"});
    } else if (larger_is_better(tolerance.metric)) {
      if (*value < tolerance.limit) {
        findings.push_back(
            {title, fmt::format("{:.4g} is below the limit {:.4g}", *value, tolerance.limit)});
      }
    } else if (std::abs(*value) > tolerance.limit) {
      findings.push_back(
          {title, fmt::format("{:.4g} is above the limit {:.4g}", *value, tolerance.limit)});
    }
  }
  if (!errors.empty()) return failure(std::move(errors));
  return findings;
}

}  // namespace stepcast
