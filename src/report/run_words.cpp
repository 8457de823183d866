// SPDX-License-Identifier: Apache-2.0
#include "report/run_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "report/number_text.h"

namespace stepcast {
namespace {

std::size_t count_of(const std::vector<RunVerdict>& runs, RunState state) {
  return static_cast<std::size_t>(std::ranges::count(runs, state, &RunVerdict::state));
}

}  // namespace

Json run_object(const RunVerdict& run) {
  Json out;
  out["case"] = run.key;
  out["verdict"] = name_of(run.state);
  if (run.step_time_s > 0) out["step_time_s"] = run.step_time_s;
  if (run.before_s > 0) out["before_s"] = run.before_s;
  if (!run.other.empty()) out["other"] = run.other;
  if (run.before_s > 0 && run.step_time_s > 0 && run.other.empty()) {
    out["change"] = run.change;
    out["allowed"] = run.allowed;
  }
  if (run.peak_memory_before_bytes > 0) {
    out["peak_memory_bytes"] = run.peak_memory_bytes;
    out["peak_memory_before_bytes"] = run.peak_memory_before_bytes;
    out["larger"] = run.larger;
  }
  out["parted"] = run.parted;
  return out;
}

std::string run_words(const RunVerdict& run) {
  const auto seconds = [](double s) {
    return s > 0 ? time_text(Seconds(s)) : std::string("ran out of memory");
  };
  switch (run.state) {
    case RunState::kFirst:
      return fmt::format("{}, the first", seconds(run.step_time_s));
    case RunState::kOtherWork:
      return fmt::format("{}, was {} of another run, so that they are not compared: {}",
                         seconds(run.step_time_s), seconds(run.before_s), run.other);
    case RunState::kSame:
      return fmt::format("{}, was {}: {:+.1f} %, within {:.1f} %", seconds(run.step_time_s),
                         seconds(run.before_s), 100 * run.change, 100 * run.allowed);
    case RunState::kOutOfMemory:
      return fmt::format("ran out of memory, was {}", seconds(run.before_s));
    case RunState::kFaster:
    case RunState::kSlower:
      break;
  }
  return fmt::format("{}, was {}: {:.1f} % {}", seconds(run.step_time_s), seconds(run.before_s),
                     100 * std::abs(run.change), name_of(run.state));
}

std::vector<Finding> broken_runs(const std::vector<RunVerdict>& runs) {
  std::vector<RunVerdict> worst(runs);
  std::ranges::stable_sort(worst, std::greater(), &RunVerdict::change);
  std::vector<Finding> out;
  for (const RunVerdict& run : runs) {
    if (run.state == RunState::kOutOfMemory) out.push_back({run.key, run_words(run)});
  }
  for (const RunVerdict& run : worst) {
    if (run.state == RunState::kSlower || run.state == RunState::kOtherWork) {
      out.push_back({run.key, run_words(run)});
    }
  }
  for (const RunVerdict& run : worst) {
    if (!run.larger) continue;
    const double was = run.peak_memory_before_bytes;
    out.push_back({run.key, fmt::format("peak memory {} GiB, was {}: {:.1f} % more",
                                        gib_text(static_cast<ByteCount>(run.peak_memory_bytes)),
                                        gib_text(static_cast<ByteCount>(was)),
                                        100 * (run.peak_memory_bytes / was - 1))});
  }
  for (const RunVerdict& run : worst) {
    if (!run.parted) continue;
    out.push_back({run.key, fmt::format("parted from its forecast of {}: now {:+.1f} %, outside of "
                                        "the interval",
                                        time_text(Seconds(*run.predicted_s)),
                                        100 * (run.step_time_s / *run.predicted_s - 1))});
  }
  return out;
}

std::vector<Finding> faster_runs(const std::vector<RunVerdict>& runs) {
  std::vector<Finding> out;
  for (const RunVerdict& run : runs) {
    if (run.state == RunState::kFaster) out.push_back({run.key, run_words(run)});
  }
  return out;
}

std::string runs_line(const std::vector<RunVerdict>& runs) {
  std::string out;
  for (const RunState state : {RunState::kOutOfMemory, RunState::kSlower, RunState::kOtherWork,
                               RunState::kFaster, RunState::kSame, RunState::kFirst}) {
    if (const std::size_t count = count_of(runs, state); count > 0) {
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, name_of(state));
    }
  }
  const auto larger = std::ranges::count(runs, true, &RunVerdict::larger);
  return larger > 0 ? fmt::format("{}, {} with more memory", out, larger) : out;
}

std::string forecasts_line(const std::vector<RunVerdict>& runs) {
  const auto inside = std::ranges::count(runs, true, &RunVerdict::inside);
  const auto parted = std::ranges::count(runs, true, &RunVerdict::parted);
  const auto timed =
      std::ranges::count_if(runs, [](const RunVerdict& run) { return run.step_time_s > 0; });
  return fmt::format("{} of {} inside the interval, {} parted", inside, timed, parted);
}

}  // namespace stepcast
