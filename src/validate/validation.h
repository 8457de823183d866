// SPDX-License-Identifier: Apache-2.0
// A forecast beside the run that it forecasts: errors, operation by operation, and the verdict.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "predict/operation_table.h"
#include "predict/prediction.h"
#include "program/executable.h"
#include "validate/baseline_drift.h"
#include "validate/measured_run.h"
#include "validate/rank_alone.h"
#include "validate/tolerance.h"

namespace stepcast {

// A figure that forecast and run both have. `error` is (predicted - measured) / measured, and for
// fractions (bubble) the difference. It is absent where the measured figure is zero or missing.
struct ComparedFigure {
  std::string key;  // of the prediction file: "step_time_s"
  double predicted = 0;
  double measured = 0;
  std::optional<double> error;
};

// All calls of a name in a phase, per step, on the critical rank of the run.
struct ComparedOperation {
  std::string name;
  Phase phase = Phase::kForward;
  double predicted_calls = 0, measured_calls = 0;
  Seconds predicted, measured;
  std::optional<double> error;
};

struct Validation {
  Prediction predicted;
  MeasuredRun measured;
  std::vector<ComparedFigure> figures;
  bool covered = false;                       // the measured median lies in the interval
  std::vector<ComparedOperation> operations;  // the largest difference first
  std::optional<RankAlone> alone;             // only this rank ran: no rates, no numerics
  std::optional<NumericsLimits> numerics;     // that were kept or broken
  std::vector<Finding> broken;                // why it did not pass
  std::optional<BaselineDrift> drift = {};    // against a baseline, when one was given
  bool within_limits() const { return broken.empty(); }  // tolerances and numerics
  bool regressed() const { return drift && !drift->updated && !drift->broken.empty(); }
  // Nothing is broken, but times were measured on a busy machine and are beyond their limit.
  bool inconclusive() const {
    return passed() && drift && !drift->updated && !drift->inconclusive.empty();
  }
  bool passed() const { return within_limits() && !regressed(); }
  const ComparedFigure* figure(std::string_view key) const;  // null: not compared
};

struct ValidationLimits {
  std::optional<NumericsLimits> numerics =
      NumericsLimits{};  // nothing: they were not to be checked
  std::vector<Tolerance> tolerances;
};

// "step_time=0.05" limits |error|. The figure is step_time, peak_memory, device_memory or
// bubble_fraction.
Result<Tolerance> parse_validation_tolerance(std::string_view text);

Validation compare(Prediction predicted, MeasuredRun measured,
                   const std::vector<OperationPrice>& prices, const ValidationLimits& limits);

}  // namespace stepcast
