// SPDX-License-Identifier: Apache-2.0
// A training log, read: its steps as printed, what it says of the run, and the settings that it
// prints. log_figures.h makes the run's figures of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "logs/log_forms.h"

namespace stepcast {

// One line about a step, or about the mean of all since the line before.
struct LoggedStep {
  std::int64_t step = 0;
  double rate = 0;            // in the unit of LogSteps::unit
  std::int64_t batch = 0;     // 0: not said
  std::int32_t segment = 0;   // counts the starts before it
  bool is_disturbed = false;  // behind an evaluation or a checkpoint
  bool skips = false;         // an update, because a gradient was no number
};

struct LogSteps {
  LogSource source = LogSource::kMegatron;
  LogQuantity unit = LogQuantity::kSeconds;  // of each rate
  std::vector<LoggedStep> steps;
  std::int64_t total = 0;           // that the run was to have; 0: not said
  std::int64_t unreadable = 0;      // lines with a time that is no positive number
  std::int64_t of_other_ranks = 0;  // lines that say a step again
  std::int64_t not_numbers = 0;     // lines whose loss is no number
};

struct PrintedSettings {
  std::string format;  // of `import --from`
  std::string text;
  std::int64_t line = 0;
};

struct TrainingLog {
  std::string file;
  LogSteps steps;  // of the tool that counts
  std::map<LogQuantity, double> settings;
  std::optional<PrintedSettings> printed;
  std::optional<double> most_allocated_bytes, most_reserved_bytes;
  std::int64_t lines = 0;
  std::int64_t too_long = 0;
  std::vector<std::string> notes;
};

// Errors: a file that cannot be read, holds no step, or the steps of two runs. `is_log` tells
// whether it is a log all the same.
Result<TrainingLog> read_training_log(const std::string& file);

// The log that this text is; `file` is its name in errors.
Result<TrainingLog> training_log_of(std::string_view text, const std::string& file);

}  // namespace stepcast
