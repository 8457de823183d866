// SPDX-License-Identifier: Apache-2.0
#include "report/text_table.h"

#include <algorithm>

#include "core/assert.h"
#include "core/text/escape.h"

namespace stepcast {
namespace {

const std::string kGap = "  ";

void strip_trailing_spaces(std::string& line) { line.erase(line.find_last_not_of(' ') + 1); }

}  // namespace

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;  // not a continuation byte
  }));
}

std::string padded(std::string_view text, std::size_t width, Align align) {
  const std::size_t used = display_width(text);
  const std::string fill(width > used ? width - used : 0, ' ');
  return align == Align::kLeft ? std::string(text) + fill : fill + std::string(text);
}

TextTable::TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

void TextTable::add_row(std::vector<std::string> cells) {
  STEPCAST_ASSERT(cells.size() == columns_.size(), "a cell per column");
  rows_.push_back(std::move(cells));
}

Written TextTable::text() const {
  const auto escaped = [](std::vector<std::string> cells) {
    for (std::string& cell : cells) cell = terminal_line(cell);
    return cells;
  };
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(terminal_line(column.title));
  std::vector<std::vector<std::string>> rows;
  for (const auto& row : rows_) rows.push_back(escaped(row));
  std::vector<std::size_t> beside, below;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    (columns_[c].below ? below : beside).push_back(c);
  }
  std::vector<std::size_t> widths(columns_.size());
  for (const std::size_t c : beside) {
    widths[c] = display_width(titles[c]);
    for (const auto& row : rows) widths[c] = std::max(widths[c], display_width(row[c]));
  }
  const auto line = [&](const auto& cell) {
    std::string out;
    for (const std::size_t c : beside) {
      out += (c != beside.front() ? kGap : "") + padded(cell(c), widths[c], columns_[c].align);
    }
    strip_trailing_spaces(out);
    return out + "\n";
  };
  std::string out = line([&](std::size_t c) { return titles[c]; });
  out += line([&](std::size_t c) {
    std::string rule;
    for (std::size_t i = 0; i < widths[c]; ++i) rule += "─";
    return rule;
  });
  const std::string indent(beside.empty() ? 0 : widths[beside.front()] + kGap.size(), ' ');
  for (const auto& row : rows) {
    out += line([&](std::size_t c) { return row[c]; });
    for (const std::size_t c : below) {
      if (!row[c].empty()) out += indent + row[c] + "\n";
    }
  }
  return Written::escaped(std::move(out));
}

Written TextTable::markdown() const {
  std::string titles = "|", rule = "|";
  for (const Column& column : columns_) {
    titles += " " + markdown_words(column.title) + " |";
    rule += column.align == Align::kRight ? " ---: |" : " --- |";
  }
  std::string out = titles + "\n" + rule + "\n";
  for (const auto& row : rows_) {
    out += "|";
    for (std::size_t c = 0; c < row.size(); ++c) {
      out += " " + (columns_[c].own_words ? row[c] : markdown_words(row[c])) + " |";
    }
    out += "\n";
  }
  return Written::escaped(std::move(out));
}

Written TextTable::csv() const {
  std::string out;
  const auto line = [&](std::size_t cells, const auto& cell) {
    for (std::size_t c = 0; c < cells; ++c) out += (c > 0 ? "," : "") + csv_cell(cell(c));
    out += "\n";
  };
  line(columns_.size(), [&](std::size_t c) { return columns_[c].title; });
  for (const auto& row : rows_) line(row.size(), [&](std::size_t c) { return row[c]; });
  return Written::escaped(std::move(out));
}

}  // namespace stepcast
