// SPDX-License-Identifier: Apache-2.0
// A table that a reader sorts by its titles, filters, and saves as CSV. Without the script it is a
// plain table in the order of its rows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/html/markup.h"

namespace stepcast::html {

struct DataColumn {
  std::string title;
  bool numeric = false;
  bool sortable = true;  // false: of pictures
  bool prose = false;    // long text, wide enough for some words on any screen
};

struct DataCell {
  DataCell(std::string shown) : content(text(shown)) {}
  DataCell(const char* shown) : content(text(shown)) {}
  DataCell(std::string shown, double exact) : content(text(shown)), value(exact) {}
  explicit DataCell(Html markup) : content(std::move(markup)) {}

  Html content;
  std::optional<double> value;  // exact, of a number: sorts, and is what the CSV has
};

class DataTable {
 public:
  // `caption` says what the table is; `id` is unique in its page.
  DataTable(std::string id, std::string caption, std::vector<DataColumn> columns);

  void add_row(const std::vector<DataCell>& cells, const std::string& css_class = "");
  bool empty() const { return count_ == 0; }

  struct Controls {
    bool filter = false;  // by words in a row
    bool save = true;     // as CSV
    bool tall = false;    // scrolls inside its own box
  };
  Html html(Controls controls) const;
  Html html() const { return html({false, true, false}); }

 private:
  Html head() const;
  Html bar(Controls controls) const;

  std::string id_;
  std::string caption_;
  std::vector<DataColumn> columns_;
  Html rows_;
  std::size_t count_ = 0;
};

}  // namespace stepcast::html
