// SPDX-License-Identifier: Apache-2.0
// Rows and columns as aligned text, Markdown or CSV. Cells are UTF-8; one code point is one column.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kRight;
  // For long cells: in text() on a line of its own under the row, without a title.
  bool below = false;
};

class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns);

  void add_row(std::vector<std::string> cells);  // as many cells as columns
  bool empty() const { return rows_.empty(); }

  std::string text() const;      // two spaces between columns, a rule under the titles
  std::string markdown() const;  // GitHub's table form
  std::string csv() const;       // RFC 4180, titles in the first line

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

std::size_t display_width(std::string_view text);
std::string padded(std::string_view text, std::size_t width, Align align = Align::kLeft);
std::string csv_cell(std::string_view text);  // quoted where RFC 4180 wants it

}  // namespace stepcast
