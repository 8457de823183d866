// SPDX-License-Identifier: Apache-2.0
// A baseline: the figures of an earlier check, kept in a file that is reviewed when it changes
// (docs/formats/suite.md, "Baseline").
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/text/written.h"
#include "validate/check.h"
#include "validate/tolerance.h"

namespace stepcast {

struct Rows;  // core/rows.h

// How forecasts drifted: those of now and those of the baseline, both beside what was measured when
// the baseline was made, so that a run that changed since is no drift. A case whose scenario
// changed has another forecast, which is said.
struct BaselineComparison {
  // Figures that got worse or are gone. If one of the summary did, the cases that made it come
  // first, by how much their error grew.
  std::vector<Finding> regressions;
  std::vector<Finding> changes;  // better figures, changed forecasts, new cases
};

// The keys that say which baseline a file is.
inline constexpr const char* kBaselineKey = "stepcast_baseline";                       // of `check`
inline constexpr const char* kValidationBaselineKey = "stepcast_validation_baseline";  // `validate`

// How a baseline names a case: "SUITE/ID".
std::string baseline_key(const std::string& suite, const std::string& id);

// Sorted, a case per line, the same bytes for the same figures.
Written baseline_text(const CheckReport& report);

struct Baseline {
  struct Case {
    std::optional<double> step_time_s;
    std::optional<double> peak_memory_bytes;
    std::optional<double> collective_time_s = {};
    std::optional<std::string> failed;
    std::optional<CaseFigures> measured = {};  // of the run that was recorded then
    std::optional<RunWork> work = {};
    std::optional<std::string> scenario = {};  // its fingerprint

    static Rows fields();
  };
  std::map<std::string, std::map<std::string, double>> rows;  // of the summary, by metric
  std::map<std::string, Case> cases;                          // by baseline_key()

  static Rows fields();
};

// `text` is the content of the baseline file `file`, and `suites` are those that are to be checked.
// Errors: what is no baseline of `check`, has another format, or is of other suites only.
Result<Baseline> read_baseline(const std::string& text, const std::string& file,
                               const std::vector<std::string>& suites);

BaselineComparison compare_with_baseline(const CheckReport& report, const Baseline& baseline);

}  // namespace stepcast
