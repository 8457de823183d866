// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "report/check_report.h"
#include "report/run_words.h"
#include "validate/case_limits.h"

namespace stepcast {

Result<GateOutcome> judge(const CheckReport& report, const std::vector<Tolerance>& tolerances,
                          const Baseline* baseline, const BaselineUse& use) {
  GateOutcome gate;
  gate.baseline = use.file;
  gate.closed = !tolerances.empty() || baseline != nullptr || limits_any(report.cases);
  const bool has_earlier =
      std::ranges::any_of(report.cases, [](const CaseResult& one) { return !one.earlier.empty(); });
  if (baseline != nullptr || has_earlier) gate.runs = judge_runs(report, baseline, use.slower);
  gate.closed = gate.closed || has_earlier;
  const auto broken = apply_tolerances(report.summary, tolerances);
  if (!broken) return failure(broken.error());
  // Cases come before figures of all of them: they are what somebody has to look at.
  gate.broken = broken_case_limits(report.cases);
  const auto add = [](std::vector<Finding>& target, const std::vector<Finding>& more) {
    target.insert(target.end(), more.begin(), more.end());
  };
  std::vector<Finding>& worse = use.update ? gate.changes : gate.broken;
  add(worse, broken_runs(gate.runs));
  add(gate.changes, faster_runs(gate.runs));
  if (baseline != nullptr) {
    const BaselineComparison comparison = compare_with_baseline(report, *baseline);
    gate.drifts = comparison.regressions.size();
    add(worse, comparison.regressions);
    add(gate.changes, comparison.changes);
  }
  add(gate.broken, *broken);
  return gate;
}

}  // namespace stepcast
