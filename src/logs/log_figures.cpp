// SPDX-License-Identifier: Apache-2.0
#include "logs/log_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/assert.h"
#include "core/statistics.h"

namespace stepcast {
namespace {

struct Part {
  std::vector<LoggedStep> kept;
  std::int64_t steps = 0;
  LeftOutLines left_out;
};

// Steps from one line to the next, as the log usually prints them.
std::int64_t usual_interval(const std::vector<LoggedStep>& steps) {
  std::vector<double> intervals;
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const std::int64_t between = steps[i].step - steps[i - 1].step;
    if (steps[i].segment == steps[i - 1].segment && between > 0) {
      intervals.push_back(static_cast<double>(between));
    }
  }
  return std::max<std::int64_t>(1, std::llround(median(std::move(intervals))));
}

// A batch that grows ends at its final size.
std::int64_t final_batch(const std::vector<LoggedStep>& steps) {
  for (auto at = steps.rbegin(); at != steps.rend(); ++at) {
    if (at->batch > 0) return at->batch;
  }
  return 0;
}

// Lines [begin, end) are a part between two starts.
Part part_of(const std::vector<LoggedStep>& steps, std::size_t begin, std::size_t end,
             std::int64_t interval, std::int64_t warm_up) {
  Part out;
  const std::int64_t batch = final_batch(steps);
  const std::int64_t start = std::max<std::int64_t>(0, steps[begin].step - interval);
  std::int64_t before = start;
  for (std::size_t i = begin; i < end; ++i) {
    const LoggedStep& line = steps[i];
    if (before < start + warm_up) {
      ++out.left_out.warm_up;
    } else if (line.skips) {
      ++out.left_out.skipped;
    } else if (line.is_disturbed) {
      ++out.left_out.disturbed;
    } else if (line.batch > 0 && line.batch != batch) {
      ++out.left_out.other_batch;
    } else {
      out.kept.push_back(line);
      out.steps += std::max<std::int64_t>(1, line.step - before);
    }
    before = line.step;
  }
  return out;
}

// A rate is per second, so a run of long steps has small ones.
bool is_duration(LogQuantity unit) { return unit == LogQuantity::kSeconds; }

}  // namespace

Result<LogFigures> figures_of(const TrainingLog& log, std::int64_t warm_up) {
  const std::vector<LoggedStep>& steps = log.steps.steps;
  const bool tells_once = tool_of(log.steps.source).tells_once;
  const std::int64_t interval = usual_interval(steps);
  Part best;
  LeftOutLines all;
  LogFigures out;
  out.parts = 0;
  std::int64_t kept_in_all = 0;
  for (std::size_t begin = 0, end = 0; begin < steps.size(); begin = end) {
    while (end < steps.size() && steps[end].segment == steps[begin].segment) ++end;
    Part part = part_of(steps, begin, end, interval, tells_once ? 0 : warm_up);
    ++out.parts;
    all.warm_up += part.left_out.warm_up;
    all.disturbed += part.left_out.disturbed;
    all.skipped += part.left_out.skipped;
    all.other_batch += part.left_out.other_batch;
    kept_in_all += static_cast<std::int64_t>(part.kept.size());
    if (part.steps >= best.steps) best = std::move(part);
  }
  const std::int64_t least = tells_once ? 1 : kFewestSteps;
  if (best.steps < least) {
    return failure({ErrorCode::kBadValue,
                    fmt::format("{} step{} left of {} line{} when warm-up, evaluation and restarts "
                                "are left out, and {} are needed",
                                best.steps, best.steps == 1 ? " is" : "s are", steps.size(),
                                steps.size() == 1 ? "" : "s", least),
                    log.file, "", "a longer log, or --warm-up N"});
  }
  std::vector<double> rates;
  for (const LoggedStep& line : best.kept) rates.push_back(line.rate);
  out.unit = log.steps.unit;
  out.median = median(rates);
  out.low = quantile(rates, 0.25);
  out.high = quantile(rates, 0.75);
  if (!is_duration(out.unit)) std::swap(out.low, out.high);
  out.steps = best.steps;
  out.lines = static_cast<std::int64_t>(best.kept.size());
  out.first = best.kept.front().step;
  out.last = best.kept.back().step;
  out.batch = final_batch(steps);
  out.left_out = all;
  out.left_out.other_parts = kept_in_all - out.lines;
  return out;
}

double step_seconds(LogQuantity unit, double rate, const RunSize& size) {
  switch (unit) {
    case LogQuantity::kSeconds:
      return rate;
    case LogQuantity::kStepsPerSecond:
      return 1 / rate;
    case LogQuantity::kSamplesPerSecond:
      return size.global_batch / rate;
    case LogQuantity::kTokensPerSecond:
      return size.global_batch * size.sequence / rate;
    case LogQuantity::kTokensPerSecondPerGpu:
      return size.global_batch * size.sequence / (rate * size.gpus);
    default:
      STEPCAST_ASSERT(false, "a rate");
      return 0;
  }
}

}  // namespace stepcast
