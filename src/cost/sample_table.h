// SPDX-License-Identifier: Apache-2.0
// Samples as rows of numbers and names under named columns, {"columns": [...], "rows": [[...]]}. A
// sample's rows (core/rows.h) are the columns: reader and writer follow.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/json_tree.h"
#include "core/rows.h"

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

std::vector<std::string> sample_columns(const Rows& columns);
void read_cells(const SampleTable& table, std::size_t row, const Rows& columns, void* sample);
// A row of them; `digits` rounds its numbers.
Json sample_row(const Rows& columns, const void* sample, double (*digits)(double));

// The keys "columns" and "rows".
template <class Sample>
std::vector<Sample> read_samples(ObjectReader& reader) {
  const Rows columns = Sample::columns();
  const SampleTable table(reader, sample_columns(columns));
  std::vector<Sample> out(table.size());
  for (std::size_t row = 0; row < out.size(); ++row) read_cells(table, row, columns, &out[row]);
  return out;
}

}  // namespace stepcast
