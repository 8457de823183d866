// SPDX-License-Identifier: Apache-2.0
#include "logs/log_table.h"

#include <algorithm>
#include <cmath>

#include "core/limits.h"
#include "core/text/csv_line.h"
#include "logs/log_number.h"

namespace stepcast {
namespace {

constexpr std::size_t kMostColumns = 10000;

bool is_rate(LogQuantity quantity) {
  return quantity == LogQuantity::kSeconds || quantity == LogQuantity::kStepsPerSecond ||
         quantity == LogQuantity::kTokensPerSecondPerGpu;
}

// "RUN - metric" is a chart's column; its least and greatest stand beside it.
const LogColumn* column_named(std::string_view name) {
  if (const auto dash = name.rfind(" - "); dash != std::string_view::npos) {
    name.remove_prefix(dash + 3);
  }
  const auto columns = log_columns();
  const auto found =
      std::ranges::find_if(columns, [&](const LogColumn& c) { return name == c.name; });
  return found == columns.end() ? nullptr : &*found;
}

std::vector<const LogColumn*> columns_of(std::string_view header) {
  std::vector<const LogColumn*> out;
  for (const std::string& name : cells_of_csv_line(header, kMostColumns)) {
    out.push_back(column_named(name));
  }
  return out;
}

std::size_t rates_in(const std::vector<const LogColumn*>& columns) {
  return static_cast<std::size_t>(std::ranges::count_if(
      columns, [](const LogColumn* column) { return column && is_rate(column->quantity); }));
}

bool has(const std::vector<const LogColumn*>& columns, LogQuantity quantity) {
  return std::ranges::any_of(
      columns, [&](const LogColumn* column) { return column && column->quantity == quantity; });
}

}  // namespace

bool LogTable::is_header(std::string_view line) {
  if (line.find(',') == std::string_view::npos || line.find('{') != std::string_view::npos) {
    return false;
  }
  const auto columns = columns_of(line);
  return has(columns, LogQuantity::kStep) &&
         (rates_in(columns) > 0 || has(columns, LogQuantity::kClock));
}

LogTable::LogTable(std::string_view header)
    : columns_(columns_of(header)), rates_(rates_in(columns_)) {
  has_clock_alone_ = rates_ == 0;
}

void LogTable::take(std::string_view line, LogSteps& steps, TrainingLog& log) {
  LoggedStep row;
  std::optional<double> step, rate, clock;
  const auto cells = cells_of_csv_line(line, kMostColumns);
  for (std::size_t i = 0; i < std::min(cells.size(), columns_.size()); ++i) {
    if (columns_[i] == nullptr || cells[i].empty()) continue;
    auto value = leading_number(cells[i]);
    if (!value) continue;
    *value *= columns_[i]->scale;
    const LogQuantity quantity = columns_[i]->quantity;
    const bool is_positive = std::isfinite(*value) && *value > 0 && *value < 1e15;
    if (quantity == LogQuantity::kStep && std::isfinite(*value) && std::abs(*value) < 1e15) {
      step = value;
    } else if (is_rate(quantity)) {
      steps.unit = quantity;
      rate = value;
    } else if (quantity == LogQuantity::kClock) {
      clock = value;
    } else if (quantity == LogQuantity::kGlobalBatch && is_positive) {
      row.batch = std::llround(*value);
    } else if (quantity == LogQuantity::kMicroBatch && is_positive) {
      log.settings.emplace(quantity, *value);
    } else if (quantity == LogQuantity::kAllocated && is_positive) {
      log.most_allocated_bytes = std::max(log.most_allocated_bytes.value_or(0), *value);
    } else if (quantity == LogQuantity::kReserved && is_positive) {
      log.most_reserved_bytes = std::max(log.most_reserved_bytes.value_or(0), *value);
    } else if (quantity == LogQuantity::kLoss && !std::isfinite(*value)) {
      ++steps.not_numbers;
    }
  }
  if (has_clock_alone_ && clock && step) {
    if (clock_s_ && *step > *clock_step_) rate = (*clock - *clock_s_) / (*step - *clock_step_);
    clock_s_ = clock;
    clock_step_ = step;
    if (!rate) return;
  }
  if (!step || !rate) return;  // a row of other metrics
  row.step = std::llround(*step);
  row.rate = *rate;
  if (!(row.rate > 1e-9 && row.rate < 1e12)) {
    ++steps.unreadable;
    return;
  }
  if (!steps.steps.empty() && row.step == steps.steps.back().step) return;
  if (!steps.steps.empty()) {
    const LoggedStep& last = steps.steps.back();
    row.segment = last.segment + (row.step < last.step ? 1 : 0);
  }
  if (steps.steps.size() < kMostLoggedSteps) steps.steps.push_back(row);
}

}  // namespace stepcast
