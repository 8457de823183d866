// SPDX-License-Identifier: Apache-2.0
// A run and its forecast as an earlier `validate` recorded them, and how far today's are from it
// (docs/formats/validation.md, "Baseline").
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_tree.h"
#include "core/text/written.h"
#include "validate/validation.h"

namespace stepcast {

struct Accelerator;
struct Scenario;
struct Rows;  // core/rows.h

// A run depends on these facts beside its scenario.
struct RunFacts {
  std::string backend;  // "cpu", "cuda"
  std::optional<RankId> alone;
};

// Figures by key of the prediction file; parts of the time are "time_s.compute".
using RecordedFigures = std::map<std::string, double>;

struct ValidationBaseline {
  struct Machine {
    std::string device;      // title of the processor or GPU
    std::int64_t cores = 0;  // 0: not stated, as for GPUs

    static Rows fields();
  };
  Machine machine;
  std::map<std::string, SortedJson> settings;  // of the run, by key path
  RecordedFigures predicted, measured;

  static Rows fields();
};

// The content of a baseline: sorted, a figure per line.
Written validation_baseline_text(const Scenario& scenario, const RunFacts& run,
                                 const Validation& validation);

// Errors: another format, a baseline of `check`, whatever is no baseline.
Result<ValidationBaseline> read_validation_baseline(const std::string& text,
                                                    const std::string& file);

// Gives an error for each setting in which the recorded run differs. A setting that only one side
// states is no difference, so that a later version may state more.
Errors other_run(const ValidationBaseline& baseline, const Scenario& scenario, const RunFacts& run,
                 const std::string& file);

// Why figures of this machine say nothing about those recorded; empty: it is the same kind.
std::string other_machine(const ValidationBaseline& baseline, const Accelerator& device);

// "step_time=0.05" of both sides, or "measured:step_time=0.10", "predicted:...=...". The figures
// are those of --tolerance; a limit is relative, of bubble_fraction a difference.
Result<Tolerance> parse_drift_limit(std::string_view text);

// Judges the validation's figures against the baseline: memory may change by 1 %, that of the
// driver by 5 %, step times by 10 % and bubbles by 0.05 unless `limits` say otherwise; the last
// limit on a figure counts. A forecast breaks its limit in either direction, a measurement where it
// got worse.
BaselineDrift drift_from(const ValidationBaseline& baseline, const Validation& validation,
                         const std::vector<Tolerance>& limits);

}  // namespace stepcast
