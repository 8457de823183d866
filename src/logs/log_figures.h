// SPDX-License-Identifier: Apache-2.0
// The figures of a run, by the rules of docs/import-logs.md: which of its steps count, their median
// and their quartiles.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "logs/training_log.h"

namespace stepcast {

// Steps that a run, or the part of it behind a restart, takes to warm up. NVIDIA's scripts for NeMo
// leave out as many.
inline constexpr std::int64_t kUsualWarmUp = 5;
// A median of fewer says little.
inline constexpr std::int64_t kFewestSteps = 5;

struct LeftOutLines {
  std::int64_t warm_up = 0;      // lines
  std::int64_t disturbed = 0;    // behind an evaluation or a checkpoint
  std::int64_t skipped = 0;      // without an update
  std::int64_t other_batch = 0;  // while the batch still grew
  std::int64_t other_parts = 0;  // in shorter parts between restarts
};

struct LogFigures {
  LogQuantity unit = LogQuantity::kSeconds;
  double median = 0;
  double low = 0, high = 0;  // quartiles
  std::int64_t steps = 0;    // that the lines speak for
  std::int64_t lines = 0;
  std::int64_t first = 0, last = 0;  // steps
  std::int64_t batch = 0;            // 0: the log does not say
  std::int64_t parts = 1;            // between restarts
  LeftOutLines left_out;
};

// Errors: too few steps are left.
Result<LogFigures> figures_of(const TrainingLog& log, std::int64_t warm_up = kUsualWarmUp);

// Rates depend on these beside the log.
struct RunSize {
  double global_batch = 0;
  double sequence = 0;
  double gpus = 0;
};
double step_seconds(LogQuantity unit, double rate, const RunSize& size);

}  // namespace stepcast
