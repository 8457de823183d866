// SPDX-License-Identifier: Apache-2.0
#include "validate/run_verdicts.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace stepcast {
namespace {

constexpr double kStandardErrors = 3;

// The run before, of the baseline or else of the suite.
struct Before {
  StepRun run;
  std::optional<double> predicted_s;  // then
};

std::optional<Before> before_of(const CaseResult& result, const Baseline* baseline) {
  if (baseline != nullptr) {
    const auto found = baseline->cases.find(baseline_key(result.suite, result.id));
    if (found != baseline->cases.end() && found->second.measured) {
      if (found->second.measured->out_of_memory) return std::nullopt;  // as it was accepted
      const auto run = step_run_of(*found->second.measured, found->second.work);
      if (run) return Before{*run, found->second.step_time_s};
    }
  }
  for (auto at = result.earlier.rbegin(); at != result.earlier.rend(); ++at) {
    if (const auto run = step_run_of(at->measured, at->work)) return Before{*run, {}};
  }
  return std::nullopt;
}

// Whether the run left the interval that the run before was in, or nearer to: a forecast that was
// as wrong before says nothing of this run.
bool has_parted(const RunVerdict& run, const CaseResult& result, const StepRun& before,
                std::optional<double> predicted_then_s, double slower) {
  const CaseFigures& forecast = *result.predicted;
  if (run.step_time_s <= *forecast.step_time_high_s) return false;
  const double now = run.step_time_s / *forecast.step_time_s;
  const double then = before.step_time_s / predicted_then_s.value_or(*forecast.step_time_s);
  return now / then - 1 > slower;
}

// Nothing to hold against a run that was never faster: none was there, or it had no memory either.
std::optional<RunVerdict> verdict_without_memory(const CaseResult& result,
                                                 const Baseline* baseline) {
  const auto before = before_of(result, baseline);
  if (!result.measured.out_of_memory || !before) return std::nullopt;
  RunVerdict out;
  out.key = baseline_key(result.suite, result.id);
  out.state = RunState::kOutOfMemory;
  out.before_s = before->run.step_time_s;
  if (result.work && before->run.work) out.other = other_work(*before->run.work, *result.work);
  if (!out.other.empty()) out.state = RunState::kOtherWork;
  return out;
}

}  // namespace

std::optional<StepRun> step_run_of(const CaseFigures& measured,
                                   const std::optional<RunWork>& work) {
  StepRun out{0, error_of_median(measured), work, measured.peak_memory_bytes};
  if (measured.step_time_s) {
    out.step_time_s = *measured.step_time_s;
  } else if (measured.tokens_per_s_per_gpu && work) {
    const double tokens =
        static_cast<double>(work->global_batch) * static_cast<double>(work->sequence_length);
    out.step_time_s = tokens / (*measured.tokens_per_s_per_gpu * static_cast<double>(work->gpus));
  } else {
    return std::nullopt;
  }
  return out;
}

const char* name_of(RunState state) {
  static constexpr std::array kNames = {"first",  "as fast",     "faster",
                                        "slower", "another run", "out of memory"};
  return kNames[static_cast<std::size_t>(state)];
}

void compare_runs(const StepRun& now, const StepRun& before, double slower, RunVerdict& out) {
  out.step_time_s = now.step_time_s;
  out.before_s = before.step_time_s;
  if (now.work && before.work) out.other = other_work(*before.work, *now.work);
  if (!out.other.empty()) {
    out.state = RunState::kOtherWork;
    return;
  }
  out.change = now.step_time_s / before.step_time_s - 1;
  out.allowed =
      std::max(slower, kStandardErrors * std::hypot(now.median_error, before.median_error));
  out.state = out.change > out.allowed    ? RunState::kSlower
              : out.change < -out.allowed ? RunState::kFaster
                                          : RunState::kSame;
  if (!now.peak_memory_bytes || !before.peak_memory_bytes) return;
  out.peak_memory_bytes = *now.peak_memory_bytes;
  out.peak_memory_before_bytes = *before.peak_memory_bytes;
  out.larger = out.peak_memory_bytes > out.peak_memory_before_bytes * (1 + kUsualLarger);
}

std::vector<RunVerdict> judge_runs(const CheckReport& report, const Baseline* baseline,
                                   double slower) {
  std::vector<RunVerdict> out;
  for (const CaseResult& result : report.cases) {
    const auto measured = result.compared_step_time_s();
    if (!measured) {
      if (auto without = verdict_without_memory(result, baseline)) out.push_back(*without);
      continue;
    }
    RunVerdict& run = out.emplace_back();
    run.key = baseline_key(result.suite, result.id);
    run.step_time_s = *measured;
    run.predicted_s = result.predicted->step_time_s;
    run.inside = result.covered.value_or(false);
    const auto before = before_of(result, baseline);
    if (!before) continue;
    compare_runs({*measured, error_of_median(result.measured), result.work,
                  result.measured.peak_memory_bytes},
                 before->run, slower, run);
    if (run.state == RunState::kOtherWork) continue;
    run.parted = has_parted(run, result, before->run, before->predicted_s, run.allowed);
  }
  return out;
}

}  // namespace stepcast
