// SPDX-License-Identifier: Apache-2.0
// Takes a log line by line, and keeps steps and settings alone.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/text_file.h"
#include "logs/log_table.h"
#include "logs/training_log.h"

namespace stepcast {

using LogValues =
    std::array<std::optional<double>, static_cast<std::size_t>(LogQuantity::kQuantities)>;

class LogReader {
 public:
  explicit LogReader(std::string file);
  void take(const FileLine& line);
  Result<TrainingLog> finish();

 private:
  struct Steps : LogSteps {
    std::int32_t segment = 0;
    bool is_disturbed = false;
    std::optional<std::int64_t> rank;  // whose lines are read
    LogValues heading;                 // of a step whose figures are still to come
    bool has_heading = false;
    std::optional<double> block_began_s, block_first_sample;
  };

  void take_whole(std::string_view line, std::optional<std::int64_t> rank);
  bool take_block(std::string_view line);
  void begin_block(const LogBlock& block, std::string_view line);
  void end_block();
  void take_form(const LogForm& form, std::string_view line, std::optional<std::int64_t> rank);
  void add_step(Steps& steps, const LogValues& values, std::optional<std::int64_t> rank);
  bool is_said_again(Steps& steps, std::int64_t step, std::optional<std::int64_t> rank);
  void end_heading(Steps& steps);
  void end_training_block(Steps& steps, const LogValues& values);
  void add_settings(const LogForm& form, const LogValues& values);
  void add_memory(const LogValues& values);
  void start(LogSource source);
  Steps& of(LogSource source) { return steps_[static_cast<std::size_t>(source)]; }
  const Steps* chosen(Errors& errors) const;

  TrainingLog log_;
  std::array<Steps, static_cast<std::size_t>(LogSource::kSources)> steps_;
  Errors errors_;
  const LogBlock* block_ = nullptr;  // that is being printed
  PrintedSettings printed_;
  std::int64_t depth_ = 0;  // of its braces
  bool ends_in_a_line_ = true;
  std::optional<LogTable> table_;  // where the file is one
  bool has_begun_ = false;
};

// The quantities of a line.
LogValues values_of(const LogForm& form, std::string_view line);

}  // namespace stepcast
