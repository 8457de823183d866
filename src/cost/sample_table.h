// SPDX-License-Identifier: Apache-2.0
// Samples as rows of numbers and names under named columns, {"columns": [...], "rows": [[...]]}. A
// sample declares its columns once, in columns(): reader and writer follow.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "core/enum_names.h"
#include "core/json.h"
#include "core/json_field.h"
#include "core/json_tree.h"

namespace stepcast {

// Read from the raw document: a profile has thousands of cells, and a key path for each would cost
// more than the parse. What is not accepted is reported at its row.
class SampleTable {
 public:
  SampleTable(ObjectReader& reader, const std::vector<std::string>& required);

  std::size_t size() const;
  // Cell of the `column`-th required column.
  double number(std::size_t row, std::size_t column, double low, double high) const;
  std::int64_t count(std::size_t row, std::size_t column) const;
  std::string text(std::size_t row, std::size_t column) const;
  std::size_t choice(std::size_t row, std::size_t column,
                     const std::vector<std::string>& names) const;

 private:
  const SortedJson* at(std::size_t row, std::size_t column) const;
  void report(std::size_t row, const SortedJson* cell, const std::string& accepted) const;

  std::vector<std::size_t> columns_;
  std::size_t width_ = 0;
  std::optional<JsonValue> rows_;
};

template <class Sample>
std::vector<std::string> sample_columns() {
  return std::apply(
      [](const auto&... field) { return std::vector<std::string>{std::string(field.key)...}; },
      Sample::columns());
}

template <class Value>
void read_cell(const SampleTable& table, std::size_t row, std::size_t column,
               const JsonRange& range, Value& out) {
  if constexpr (std::is_enum_v<Value>) {
    out = static_cast<Value>(table.choice(row, column, enum_names<Value>()));
  } else if constexpr (std::is_same_v<Value, bool>) {
    out = range.names ? table.choice(row, column, range.names()) == 1
                      : table.number(row, column, 0, 1) > 0;
  } else if constexpr (std::is_same_v<Value, double>) {
    out = table.number(row, column, range.least, range.most);
  } else if constexpr (std::is_same_v<Value, std::string>) {
    out = table.text(row, column);
  } else {
    out = table.count(row, column);
  }
}

// The keys "columns" and "rows".
template <class Sample>
std::vector<Sample> read_samples(ObjectReader& reader) {
  const SampleTable table(reader, sample_columns<Sample>());
  std::vector<Sample> out(table.size());
  for (std::size_t row = 0; row < out.size(); ++row) {
    std::size_t column = 0;
    std::apply(
        [&](const auto&... field) {
          (read_cell(table, row, column++, field.range, out[row].*field.member), ...);
        },
        Sample::columns());
  }
  return out;
}

template <class Value>
Json written_cell(const Value& value, const JsonRange& range, double (*digits)(double)) {
  if constexpr (std::is_enum_v<Value>) {
    return name_of(value);
  } else if constexpr (std::is_same_v<Value, bool>) {
    return range.names ? Json(range.names()[value ? 1 : 0]) : Json(value ? 1 : 0);
  } else if constexpr (std::is_same_v<Value, double>) {
    return digits(value);
  } else {
    return value;
  }
}

// A row of them; `digits` rounds its numbers.
template <class Sample>
Json sample_row(const Sample& sample, double (*digits)(double)) {
  Json out = Json::array();
  std::apply(
      [&](const auto&... field) {
        (out.push_back(written_cell(sample.*field.member, field.range, digits)), ...);
      },
      Sample::columns());
  return out;
}

}  // namespace stepcast
