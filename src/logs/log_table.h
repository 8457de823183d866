// SPDX-License-Identifier: Apache-2.0
// Tables of metrics in CSV: what W&B exports of a chart or of a run's history, and TensorBoard of
// one tag. A column is known by its name (log_columns()).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "logs/training_log.h"

namespace stepcast {

class LogTable {
 public:
  static bool is_header(std::string_view line);
  explicit LogTable(std::string_view header);

  // Adds the step that a row states.
  void take(std::string_view line, LogSteps& steps, TrainingLog& log);
  std::size_t runs() const { return rates_; }  // with a step time each

 private:
  std::vector<const LogColumn*> columns_;  // null: another
  std::size_t rates_ = 0;
  bool has_clock_alone_ = false;
  std::optional<double> clock_s_, clock_step_;  // of the row before
};

}  // namespace stepcast
