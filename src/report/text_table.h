// SPDX-License-Identifier: Apache-2.0
// Rows and columns as aligned text, Markdown or CSV. Cells are UTF-8; one code point is one column.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/text/written.h"

namespace stepcast {

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kRight;
  // Long cells stand in text() on a line of their own under the row, without a title.
  bool below = false;
  // Only for sentences of the program itself: Markdown keeps their `code`.
  bool own_words = false;
};

class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns);

  void add_row(std::vector<std::string> cells);  // as many cells as columns
  bool empty() const { return rows_.empty(); }

  Written text() const;      // two spaces between columns, a rule under the titles
  Written markdown() const;  // GitHub's table form
  Written csv() const;       // RFC 4180, titles in the first line

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

std::size_t display_width(std::string_view text);
std::string padded(std::string_view text, std::size_t width, Align align = Align::kLeft);

}  // namespace stepcast
