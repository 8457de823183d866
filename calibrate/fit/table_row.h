// SPDX-License-Identifier: Apache-2.0
// One row of a table by column name. What is missing, of the wrong type, zero, negative or too
// large is an error of its cell.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/json.h"

namespace stepcast {

class TableRow {
 public:
  // `columns` must outlive the row.
  TableRow(const std::vector<std::string>& columns, JsonValue value);

  bool ok() const { return !cells_.empty(); }  // as many cells as columns
  bool is_sound() const { return sound_; }     // and nothing that was asked of it was wrong
  bool has(const char* column) const;          // and it is not null
  // From 1 to kMostCount. A column that the table lacks means `otherwise`; 0: it is required.
  std::int64_t count(const char* column, std::int64_t otherwise = 0) const;
  double positive(const char* column) const;            // more than 0; required
  bool flag(const char* column, bool otherwise) const;  // true, 1 or "True"
  std::string text(const char* column) const;           // "" where the table lacks it
  // The place of the cell's text in `names`; 0 where the table lacks the column.
  std::size_t choice(const char* column, const std::vector<std::string>& names) const;

  void fail(const std::string& message, const std::string& hint) const;

  // No dimension of a kernel is larger, and the product of two stays inside 63 bits.
  static constexpr std::int64_t kMostCount = std::int64_t{1} << 31;

 private:
  template <class T>
  T wrong(const JsonValue& cell, const std::string& message, const std::string& hint,
          T instead) const;
  const JsonValue* at(const char* column) const;
  const JsonValue* required(const char* column) const;

  const std::vector<std::string>& columns_;
  JsonValue value_;
  std::vector<JsonValue> cells_;
  mutable bool sound_ = true;
};

}  // namespace stepcast
