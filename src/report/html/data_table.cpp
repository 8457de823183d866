// SPDX-License-Identifier: Apache-2.0
#include "report/html/data_table.h"

#include <fmt/format.h>

#include <cmath>

#include "core/assert.h"
#include "report/number_text.h"

namespace stepcast::html {

DataTable::DataTable(std::string id, std::string caption, std::vector<DataColumn> columns)
    : id_(std::move(id)), caption_(std::move(caption)), columns_(std::move(columns)) {}

void DataTable::add_row(const std::vector<DataCell>& cells, const std::string& css_class) {
  STEPCAST_ASSERT(cells.size() == columns_.size(), "a row has a cell for each column");
  Html row;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::vector<Attribute> attributes;
    if (columns_[i].numeric) attributes.push_back({"class", "number"});
    if (columns_[i].prose) attributes.push_back({"class", "prose"});
    if (cells[i].value && std::isfinite(*cells[i].value)) {
      attributes.push_back({"data-value", exact_text(*cells[i].value)});
    }
    if (i == 0) attributes.push_back({"scope", "row"});
    row += element(i == 0 ? "th" : "td", attributes, cells[i].content);
  }
  std::vector<Attribute> attributes;
  if (!css_class.empty()) attributes.push_back({"class", css_class});
  rows_ += element("tr", attributes, row) + text("\n");
  ++count_;
}

Html DataTable::head() const {
  Html titles;
  for (const DataColumn& column : columns_) {
    std::vector<Attribute> attributes{{"scope", "col"}};
    if (column.numeric) attributes.push_back({"class", "number"});
    if (!column.sortable) {
      titles += element("th", attributes, column.title);
      continue;
    }
    attributes.push_back({"aria-sort", "none"});
    titles += element("th", attributes,
                      element("button", {{"type", "button"}, {"class", "sort"}}, column.title));
  }
  return element("thead", {}, element("tr", {}, titles));
}

Html DataTable::bar(Controls controls) const {
  Html out;
  if (controls.filter) {
    out += element("label", {},
                   text("Filter ") + element("input", {{"type", "search"},
                                                       {"class", "filter"},
                                                       {"aria-controls", id_},
                                                       {"placeholder", "words in a row"}}));
    out += element("span", {{"class", "count"}, {"role", "status"}},
                   fmt::format("{} of {}", count_, count_));
  }
  if (controls.save) {
    out += element("button", {{"type", "button"}, {"class", "save"}, {"aria-controls", id_}},
                   "Save as CSV");
  }
  return out.empty()
             ? out
             : element(
                   "div",
                   {{"class", controls.filter ? "bar needs-script" : "bar corner needs-script"}},
                   out);
}

Html DataTable::html(Controls controls) const {
  const Html table =
      element("table", {{"id", id_}},
              element("caption", {}, caption_) + head() + text("\n") + element("tbody", {}, rows_));
  return element("div", {{"class", "table"}},
                 bar(controls) + element("div",
                                         {{"class", controls.tall ? "scroll tall" : "scroll"},
                                          {"tabindex", "0"},
                                          {"role", "region"},
                                          {"aria-label", caption_}},
                                         table));
}

}  // namespace stepcast::html
