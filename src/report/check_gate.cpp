// SPDX-License-Identifier: Apache-2.0
#include "report/check_report.h"
#include "validate/case_limits.h"

namespace stepcast {

Result<GateOutcome> judge(const CheckReport& report, const std::vector<Tolerance>& tolerances,
                          const Baseline* baseline, const BaselineUse& use) {
  GateOutcome gate;
  gate.baseline = use.file;
  gate.closed = !tolerances.empty() || baseline != nullptr || limits_any(report.cases);
  const auto broken = apply_tolerances(report.summary, tolerances);
  if (!broken) return failure(broken.error());
  // Cases come before figures of all of them: they are what somebody has to look at.
  gate.broken = broken_case_limits(report.cases);
  if (baseline != nullptr) {
    const BaselineComparison comparison = compare_with_baseline(report, *baseline);
    auto& target = use.update ? gate.changes : gate.broken;
    target.insert(target.end(), comparison.regressions.begin(), comparison.regressions.end());
    gate.changes.insert(gate.changes.end(), comparison.changes.begin(), comparison.changes.end());
  }
  gate.broken.insert(gate.broken.end(), broken->begin(), broken->end());
  return gate;
}

}  // namespace stepcast
