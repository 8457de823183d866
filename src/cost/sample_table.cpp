// SPDX-License-Identifier: Apache-2.0
#include "cost/sample_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text/escape.h"
#include "core/write_rows.h"

namespace stepcast {

SampleTable::SampleTable(ObjectReader& reader, const std::vector<std::string>& required) {
  const auto columns = reader.required("columns");
  const auto rows = reader.required("rows");
  if (!columns || !rows) return;
  std::vector<std::string> names;
  for (const JsonValue& item : columns->items()) names.push_back(item.text().value_or(""));
  width_ = names.size();
  for (const std::string& name : required) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      columns->fail(ErrorCode::kMissingKey, fmt::format("there is no column '{}'", name),
                    fmt::format("needs {}", one_of(required)));
    }
    columns_.push_back(static_cast<std::size_t>(found - names.begin()));
  }
  if (!rows->is_array()) {
    rows->items();  // reports the wrong type
    return;
  }
  rows_ = *rows;
}

std::size_t SampleTable::size() const { return rows_ ? rows_->raw().size() : 0; }

double SampleTable::number(std::size_t row, std::size_t column, double low, double high) const {
  const SortedJson* cell = at(row, column);
  if (cell != nullptr && cell->is_number()) {
    const double value = cell->get<double>();
    if (value >= low && value <= high) return value;
  }
  report(row, cell, fmt::format("a number from {} to {}", low, high));
  return low;
}

std::int64_t SampleTable::count(std::size_t row, std::size_t column) const {
  const SortedJson* cell = at(row, column);
  if (cell != nullptr && cell->is_number_integer()) {
    const auto value = cell->get<std::int64_t>();
    if (value >= 1 && value <= ObjectReader::kMaxCount) return value;
  }
  report(row, cell, "a whole number of at least 1");
  return 1;
}

std::string SampleTable::text(std::size_t row, std::size_t column) const {
  const SortedJson* cell = at(row, column);
  if (cell != nullptr && cell->is_string()) return cell->get<std::string>();
  report(row, cell, "text");
  return "";
}

std::size_t SampleTable::choice(std::size_t row, std::size_t column,
                                const std::vector<std::string>& names) const {
  const SortedJson* cell = at(row, column);
  if (cell != nullptr && cell->is_string()) {
    const auto found = std::find(names.begin(), names.end(), cell->get_text());
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  }
  report(row, cell, one_of(names));
  return 0;
}

const SortedJson* SampleTable::at(std::size_t row, std::size_t column) const {
  const SortedJson& line = rows_->raw()[row];
  if (!line.is_array() || line.size() != width_ || columns_[column] >= width_) return nullptr;
  return &line[columns_[column]];
}

void SampleTable::report(std::size_t row, const SortedJson* cell,
                         const std::string& accepted) const {
  if (columns_.empty()) return;
  const JsonValue line = rows_->items()[row];
  line.fail(ErrorCode::kBadValue,
            cell == nullptr ? fmt::format("the row has not {} cells", width_)
                            : fmt::format("{} is not accepted here", json_text(*cell)),
            accepted);
}

std::vector<std::string> sample_columns(const Rows& columns) {
  std::vector<std::string> out;
  for (const Row& column : columns) out.emplace_back(column.key);
  return out;
}

void read_cells(const SampleTable& table, std::size_t row, const Rows& columns, void* sample) {
  std::size_t at = 0;
  for (const Row& column : columns) {
    const std::size_t place = at++;
    const RowType& type = *column.type;
    const RowRange& range = column.range;
    void* out = column.member(sample);
    if (type.kind == RowKind::kNumber) {
      type.set_number(out, table.number(row, place, range.least, range.most));
    } else if (type.kind == RowKind::kText) {
      *static_cast<std::string*>(out) = table.text(row, place);
    } else if (const RowNames names = range.names ? range.names : type.names) {
      type.set_integer(out, static_cast<std::int64_t>(table.choice(row, place, names())));
    } else if (type.kind == RowKind::kTruth) {
      type.set_integer(out, table.number(row, place, 0, 1) > 0 ? 1 : 0);
    } else {
      type.set_integer(out, table.count(row, place));
    }
  }
}

Json sample_row(const Rows& columns, const void* sample, double (*digits)(double)) {
  Json out = Json::array();
  for (const Row& column : columns) {
    const void* value = column.of(sample);
    const RowType& type = *column.type;
    if (type.kind == RowKind::kNumber) {
      out.push_back(digits(type.number(value)));
    } else if (type.kind == RowKind::kTruth && column.range.names == nullptr) {
      out.push_back(type.integer(value));
    } else {
      out.push_back(written_value(value, type, column.range));
    }
  }
  return out;
}

}  // namespace stepcast
