// SPDX-License-Identifier: Apache-2.0
// The outcome of `check` in every format (docs/formats/suite.md).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/text/written.h"
#include "validate/baseline.h"
#include "validate/check.h"
#include "validate/run_verdicts.h"
#include "validate/tolerance.h"

namespace stepcast {

// Holds what the gate found. `broken` (limits not kept, regressions) fails the build.
struct GateOutcome {
  std::vector<Finding> broken;
  std::vector<Finding> changes;       // against the baseline, for the reviewer
  std::string baseline = {};          // the file; empty: none
  bool closed = false;                // there was something to keep: the outcome is a verdict
  std::vector<RunVerdict> runs = {};  // where there are runs before them, or a baseline
  std::size_t drifts = 0;             // forecasts and figures of them that got worse
};

// Limits, runs before and a baseline judge a report; a null baseline: there is none. An `update` of
// the baseline accepts what got worse, but still shows it. Errors: limits of rows that there are
// not.
struct BaselineUse {
  std::string file = {};
  bool update = false;
  double slower = kUsualSlower;  // so much slower than before a run may be
};
Result<GateOutcome> judge(const CheckReport& report, const std::vector<Tolerance>& tolerances,
                          const Baseline* baseline = nullptr, const BaselineUse& use = {});

// Formats for people show this. Formats for programs always hold everything.
struct CheckView {
  bool tags = false;  // a row of the summary per tag
  bool summary_only = false;
  std::size_t worst = 0;  // largest errors of each suite; 0: the ten largest of all
};

Written check_table(const CheckReport& report, const GateOutcome& gate = {},
                    const CheckView& view = {});
Written check_markdown(const CheckReport& report, const GateOutcome& gate = {},
                       const CheckView& view = {});
// A page of its own (docs/reports.md).
Written check_html(const CheckReport& report, const GateOutcome& gate = {});
Written check_csv(const CheckReport& report);  // a line per case
Written check_json(const CheckReport& report, const GateOutcome& gate = {});

// JUnit XML: a test suite per suite, a test case per case (skipped when not modelled, an error when
// it could not be predicted), and a suite "gate" with one failure per broken limit.
Written check_junit(const CheckReport& report, const GateOutcome& gate = {});

// GitHub workflow commands: an error per broken limit, a warning per suite with failed cases.
Written check_github(const CheckReport& report, const GateOutcome& gate = {});

}  // namespace stepcast
