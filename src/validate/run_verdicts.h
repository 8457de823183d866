// SPDX-License-Identifier: Apache-2.0
// Holds each recorded run against the one before it: did it become slower, and did it part from its
// forecast (docs/gate.md, "Three verdicts"). Whether forecasts drifted is in validate/baseline.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "validate/baseline.h"
#include "validate/check.h"

namespace stepcast {

// So much slower than before is not told from chance: steps of equal runs on one cluster differ by
// a few per cent.
inline constexpr double kUsualSlower = 0.04;
// So much more memory is not told from chance: the allocator's peaks of equal runs are alike where
// no router deals the tokens, and differ by a few per cent where one does.
inline constexpr double kUsualLarger = 0.05;

enum class RunState { kFirst, kSame, kFaster, kSlower, kOtherWork, kOutOfMemory };
const char* name_of(RunState state);  // "slower"

struct RunVerdict {
  std::string key;  // baseline_key()
  RunState state = RunState::kFirst;
  double step_time_s = 0;  // 0 where the run ran out of memory
  double before_s = 0;     // 0 where nothing is compared
  double change = 0;       // relative; above 0 is slower
  double allowed = 0;      // the change that tolerance and spread leave
  std::string other;       // how the work differs
  // 0 unless both runs tell it and did equal work.
  double peak_memory_bytes = 0;
  double peak_memory_before_bytes = 0;
  bool larger = false;  // by more than kUsualLarger
  // Against the forecast.
  std::optional<double> predicted_s;
  bool inside = false;  // of its interval
  bool parted = false;  // slower than the interval, and further off the forecast than before
};

// How long the median step of a run took, and what memory it had.
struct StepRun {
  double step_time_s = 0;
  double median_error = 0;      // relative (error_of_median)
  std::optional<RunWork> work;  // nothing: not known
  std::optional<double> peak_memory_bytes = {};
};
// Fills in the state of a run and what led to it.
void compare_runs(const StepRun& now, const StepRun& before, double slower, RunVerdict& out);

// The run that a case of a suite records. Nothing where it tells no step time without a forecast.
std::optional<StepRun> step_run_of(const CaseFigures& measured, const std::optional<RunWork>& work);

// Goes through the cases that a forecast stands beside, in their order. A run is held against that
// of the baseline, or without one against the last with a step time that its suite knows. It is
// slower beyond `slower` and beyond three standard errors of the two medians. One without a step
// time has a verdict where it ran out of memory and the run before did not.
std::vector<RunVerdict> judge_runs(const CheckReport& report, const Baseline* baseline,
                                   double slower = kUsualSlower);

}  // namespace stepcast
