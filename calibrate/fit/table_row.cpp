// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/table_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stepcast {

TableRow::TableRow(const std::vector<std::string>& columns, JsonValue value)
    : columns_(columns), value_(std::move(value)), cells_(value_.items()) {
  if (cells_.size() == columns_.size()) return;
  if (value_.is_array()) {
    value_.fail(ErrorCode::kBadValue,
                fmt::format("{} cells under {} columns", cells_.size(), columns_.size()));
  }
  cells_.clear();
}

const JsonValue* TableRow::at(const char* column) const {
  const auto found = std::find(columns_.begin(), columns_.end(), column);
  if (found == columns_.end() || cells_.empty()) return nullptr;
  return &cells_[static_cast<std::size_t>(found - columns_.begin())];
}

const JsonValue* TableRow::required(const char* column) const {
  const JsonValue* cell = at(column);
  if (cell == nullptr && ok()) {
    sound_ = false;
    value_.fail(ErrorCode::kMissingKey, fmt::format("there is no column '{}'", column));
  }
  return cell;
}

bool TableRow::has(const char* column) const {
  const JsonValue* cell = at(column);
  return cell != nullptr && !cell->is_null();
}

template <class T>
T TableRow::wrong(const JsonValue& cell, const std::string& message, const std::string& hint,
                  T instead) const {
  sound_ = false;
  if (!message.empty()) cell.fail(ErrorCode::kBadValue, message, hint);
  return instead;
}

std::int64_t TableRow::count(const char* column, std::int64_t otherwise) const {
  const JsonValue* cell = otherwise == 0 ? required(column) : at(column);
  if (cell == nullptr) return std::max<std::int64_t>(otherwise, 1);
  const auto value = cell->integer();
  if (!value) return wrong(*cell, "", "", std::int64_t{1});
  if (*value >= 1 && *value <= kMostCount) return *value;
  return wrong(*cell, fmt::format("{} under '{}' is out of range", cell->dump(), column),
               fmt::format("from 1 to {}", kMostCount), std::int64_t{1});
}

double TableRow::positive(const char* column) const {
  const JsonValue* cell = required(column);
  if (cell == nullptr) return 1;
  const auto value = cell->number();
  if (!value) return wrong(*cell, "", "", 1.0);
  if (std::isfinite(*value) && *value > 0) return *value;
  return wrong(*cell, fmt::format("{} under '{}' is out of range", cell->dump(), column),
               "more than 0", 1.0);
}

bool TableRow::flag(const char* column, bool otherwise) const {
  const JsonValue* cell = at(column);
  if (cell == nullptr) return otherwise;
  if (cell->is_boolean()) return cell->boolean().value_or(otherwise);
  if (cell->is_number()) return cell->number().value_or(0) > 0;
  const std::string text = cell->text().value_or("");
  return text == "True" || text == "true";
}

std::string TableRow::text(const char* column) const {
  const JsonValue* cell = at(column);
  return cell == nullptr ? "" : cell->is_text() ? cell->text().value_or("") : cell->dump();
}

std::size_t TableRow::choice(const char* column, const std::vector<std::string>& names) const {
  const JsonValue* cell = at(column);
  if (cell == nullptr) return 0;
  const auto found = std::find(names.begin(), names.end(), cell->text().value_or(""));
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  return wrong(*cell, cell->dump() + " is not accepted here", one_of(names), std::size_t{0});
}

void TableRow::fail(const std::string& message, const std::string& hint) const {
  sound_ = false;
  value_.fail(ErrorCode::kBadValue, message, hint);
}

}  // namespace stepcast
