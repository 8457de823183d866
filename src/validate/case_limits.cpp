// SPDX-License-Identifier: Apache-2.0
#include "validate/case_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "validate/baseline.h"

namespace stepcast {
namespace {

struct Beyond {
  double excess = 0;  // of the limit
  Finding finding;
};

std::string error_text(double error, bool as_difference) {
  return as_difference ? fmt::format("{:+.3f}", error) : fmt::format("{:+.1f} %", 100 * error);
}

void judge_step(const CaseResult& one, std::vector<Beyond>& beyond) {
  const double most = *one.most_step_time_s;
  const std::string title = baseline_key(one.suite, one.id) + ": step_time";
  if (one.measured.out_of_memory) {
    beyond.push_back({std::numeric_limits<double>::infinity(),
                      {title, "ran out of memory, and was accepted with a step time"}});
    return;
  }
  const auto step_s = one.compared_step_time_s();
  if (!step_s || *step_s <= most) return;
  beyond.push_back({*step_s / most - 1,
                    {title, fmt::format("{:.4g} s, {:.1f} % above the {:.4g} s that were accepted",
                                        *step_s, 100 * (*step_s / most - 1), most)}});
}

}  // namespace

std::vector<Finding> broken_case_limits(const std::vector<CaseResult>& cases) {
  std::vector<Beyond> beyond;
  for (const CaseResult& one : cases) {
    if (one.most_step_time_s) judge_step(one, beyond);
    if (!one.limits.any() || one.not_supported) continue;
    const std::string key = baseline_key(one.suite, one.id);
    if (!one.failed.empty()) {
      beyond.push_back({std::numeric_limits<double>::infinity(),
                        {key, "has a limit and is not predicted: " + one.failed}});
      continue;
    }
    for (const JudgedFigure& figure : judged_figures()) {
      const auto limit = one.limits.*figure.error;
      const auto error = one.errors.*figure.error;
      if (!limit || !error || std::abs(*error) <= *limit) continue;
      const std::string allowed = figure.as_difference ? fmt::format("{:.4g}", *limit)
                                                       : fmt::format("{:.4g} %", 100 * *limit);
      beyond.push_back({std::abs(*error) - *limit,
                        {fmt::format("{}: {}", key, figure.name),
                         fmt::format("error {}, the suite allows {}",
                                     error_text(*error, figure.as_difference), allowed)}});
    }
  }
  std::stable_sort(beyond.begin(), beyond.end(),
                   [](const Beyond& a, const Beyond& b) { return a.excess > b.excess; });
  std::vector<Finding> out;
  out.reserve(beyond.size());
  for (Beyond& one : beyond) out.push_back(std::move(one.finding));
  return out;
}

bool limits_any(const std::vector<CaseResult>& cases) {
  return std::ranges::any_of(cases, [](const CaseResult& one) {
    return one.limits.any() || one.most_step_time_s.has_value();
  });
}

}  // namespace stepcast
