// SPDX-License-Identifier: Apache-2.0
#include "report/screen_table.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "report/text_table.h"
#include "report/wrapped_words.h"

namespace stepcast {
namespace {

constexpr std::size_t kColumnGap = 2;
constexpr std::size_t kShortText = 24;   // a column of texts is this wide at least, or moves below
constexpr std::size_t kWholeNames = 44;  // names of rows up to this width stay in one line
constexpr std::size_t kLongText = 60;    // sentences need no title
constexpr std::size_t kMostLines = 3;    // longer texts move below
constexpr std::size_t kMostIndent = 24;  // of what stands below

struct ReadColumn {
  std::size_t begin = 0, width = 0;
  std::string title;
  Align align = Align::kLeft;
  bool bars = false;
};

struct ReadRow {
  std::vector<std::string> cells;
  std::vector<std::string> below;
};

struct ReadTable {
  std::vector<ReadColumn> columns;
  std::vector<ReadRow> rows;
};

std::string part(const std::vector<std::string>& glyphs, std::size_t begin, std::size_t width) {
  std::string out;
  for (std::size_t i = begin; i < std::min(begin + width, glyphs.size()); ++i) out += glyphs[i];
  return out;
}

std::string stripped(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? ""
                                    : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

std::vector<ReadColumn> columns_of(const std::string& rule) {
  std::vector<ReadColumn> out;
  bool inside = false;
  std::size_t at = 0;
  for (const std::string& glyph : glyphs_of(rule)) {
    if (glyph == "─" && !std::exchange(inside, true))
      out.push_back({at, 0, "", Align::kLeft, false});
    if (glyph != "─") inside = false;
    if (inside) ++out.back().width;
    ++at;
  }
  return out;
}

// A row has blanks between its columns; whatever crosses them stands below a row.
bool is_row(const std::vector<std::string>& glyphs, const std::vector<ReadColumn>& columns) {
  std::size_t used = 0, last = 0;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const std::size_t end = columns[c].begin + columns[c].width;
    if (!stripped(part(glyphs, columns[c].begin, columns[c].width)).empty()) {
      ++used;
      last = c;
    }
    if (!stripped(part(glyphs, end, kColumnGap)).empty()) return false;
  }
  const bool short_line_below = used == 1 && last == 1;
  return glyphs.size() <= columns.back().begin + columns.back().width && !short_line_below;
}

bool is_bar(const std::string& cell) {
  const std::vector<std::string> glyphs = glyphs_of(stripped(cell));
  return std::ranges::all_of(glyphs, [](const std::string& glyph) { return glyph == "█"; });
}

// Numbers end, and names begin, where their column does.
Align align_of(const std::vector<std::string>& raw, std::size_t width) {
  const bool left = std::ranges::all_of(raw, [](const std::string& cell) {
    return cell.empty() || cell.front() != ' ' || stripped(cell).empty();
  });
  const bool right = std::ranges::all_of(raw, [&](const std::string& cell) {
    return stripped(cell).empty() || (display_width(cell) == width && cell.back() != ' ');
  });
  return right && !left ? Align::kRight : Align::kLeft;
}

ReadTable read_table(const std::vector<std::string>& lines) {
  ReadTable out{columns_of(lines[1]), {}};
  std::vector<std::vector<std::string>> raw(out.columns.size());
  const auto cells_of = [&](const std::vector<std::string>& glyphs) {
    std::vector<std::string> cells;
    for (std::size_t c = 0; c < out.columns.size(); ++c) {
      cells.push_back(part(glyphs, out.columns[c].begin, out.columns[c].width));
      raw[c].push_back(cells.back());
    }
    return cells;
  };
  const std::vector<std::string> titles = cells_of(glyphs_of(lines[0]));
  for (std::size_t i = 2; i < lines.size(); ++i) {
    const std::vector<std::string> glyphs = glyphs_of(lines[i]);
    if (out.rows.empty() || is_row(glyphs, out.columns)) {
      out.rows.push_back({cells_of(glyphs), {}});
    } else {
      out.rows.back().below.push_back(stripped(lines[i]));
    }
  }
  for (std::size_t c = 0; c < out.columns.size(); ++c) {
    ReadColumn& column = out.columns[c];
    column.title = stripped(titles[c]);
    column.align = align_of(raw[c], column.width);
    column.bars = column.title.empty() && std::ranges::all_of(raw[c], is_bar);
    for (ReadRow& row : out.rows) {
      if (!column.bars) row.cells[c] = stripped(row.cells[c]);
    }
  }
  return out;
}

bool is_rule(const std::string& line) {
  std::size_t blanks = kColumnGap;
  bool any = false;
  for (const std::string& glyph : glyphs_of(line)) {
    if (glyph == "─") {
      if (blanks != 0 && blanks != kColumnGap) return false;
      blanks = 0;
      any = true;
    } else if (glyph == " " && any) {
      ++blanks;
    } else {
      return false;
    }
  }
  return any && blanks == 0;
}

using Columns = std::vector<std::size_t>;  // by number

// The least that a column takes: figures stay in one line, their titles may not.
std::size_t least_width(const ReadTable& table, std::size_t c) {
  const ReadColumn& column = table.columns[c];
  if (column.bars) return std::min<std::size_t>(column.width, 12);
  std::size_t word = longest_word(column.title), cell = 0;
  for (const ReadRow& row : table.rows) {
    cell = std::max(cell, shown_width(row.cells[c]));
    if (column.align == Align::kLeft) word = std::max(word, longest_word(row.cells[c]));
  }
  if (column.align == Align::kRight) return std::max(word, cell);
  if (c == 0 && column.width <= kWholeNames) return column.width;
  return std::min(column.width, std::max(kShortText, std::min(word, kWholeNames)));
}

std::size_t sum_of(const Columns& widths) {
  return std::accumulate(widths.begin(), widths.end(), kColumnGap * (widths.size() - 1));
}

// Widths of these columns within `width`, none beyond what its texts take; empty if that cannot be.
Columns widths_of(const ReadTable& table, const Columns& columns, std::size_t width) {
  Columns least, most;
  for (const std::size_t c : columns) {
    least.push_back(least_width(table, c));
    most.push_back(std::max(least.back(), table.columns[c].width));
  }
  if (sum_of(least) > width) return {};
  Columns out = least;
  for (std::size_t cap = 1; cap <= width; ++cap) {
    for (std::size_t i = 0; i < out.size() && sum_of(out) < width; ++i) {
      if (out[i] < std::min(cap, most[i])) ++out[i];
    }
  }
  return out;
}

std::size_t lines_within(const ReadTable& table, std::size_t c, std::size_t width) {
  std::size_t out = 1;
  for (const ReadRow& row : table.rows) {
    out = std::max(out, wrapped_words(row.cells[c], width, width, WideWords::kCut).size());
  }
  return out;
}

struct Arrangement {
  std::vector<Columns> blocks;  // the tables one below the other, which all begin with the names
  std::vector<Columns> widths;
  Columns below;
};

// Tables one below the other, each with as many columns as there is room for.
void split(const ReadTable& table, const Columns& columns, std::size_t width, Arrangement& out) {
  Columns block{columns.front()};
  for (std::size_t i = 1; i < columns.size(); ++i) {
    Columns longer = block;
    longer.push_back(columns[i]);
    if (block.size() > 1 && widths_of(table, longer, width).empty()) {
      out.blocks.push_back(block);
      block = {columns.front(), columns[i]};
    } else {
      block = std::move(longer);
    }
  }
  out.blocks.push_back(block);
  for (const Columns& one : out.blocks) {
    Columns widths = widths_of(table, one, width);
    if (widths.empty()) {
      for (const std::size_t c : one) widths.push_back(least_width(table, c));
    }
    out.widths.push_back(std::move(widths));
  }
}

Arrangement arrangement_of(const ReadTable& table, std::size_t width) {
  Arrangement out;
  Columns beside;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    // A column without a word has no room to take from others.
    const bool says = std::ranges::any_of(
        table.rows, [&](const ReadRow& row) { return !stripped(row.cells[c]).empty(); });
    if (c == 0 || says) beside.push_back(c);
  }
  while (true) {
    const Columns widths = widths_of(table, beside, width);
    auto longest = beside.end();
    for (auto c = std::next(beside.begin()); c < beside.end(); ++c) {
      const ReadColumn& column = table.columns[*c];
      if (column.bars || column.align == Align::kRight || column.width <= kShortText) continue;
      const bool too_long =
          widths.empty() ||
          lines_within(table, *c, widths[static_cast<std::size_t>(c - beside.begin())]) >
              kMostLines;
      if (!too_long) continue;
      if (longest == beside.end() || column.width > table.columns[*longest].width) longest = c;
    }
    if (longest == beside.end()) break;
    out.below.insert(std::ranges::lower_bound(out.below, *longest), *longest);
    beside.erase(longest);
  }
  split(table, beside, width, out);
  return out;
}

std::string scaled_bar(const std::string& raw, std::size_t from, std::size_t to) {
  std::string out;
  const std::vector<std::string> glyphs = glyphs_of(raw);
  for (std::size_t i = 0; i < to; ++i) {
    const std::size_t at = i * from / to;
    out += at < glyphs.size() ? glyphs[at] : " ";
  }
  return out;
}

void add_lines(const ReadTable& table, const Columns& columns, const Columns& widths,
               const std::vector<std::string>& cells, std::vector<std::string>& out) {
  std::vector<std::vector<std::string>> wrapped;
  std::size_t most = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const ReadColumn& column = table.columns[columns[i]];
    const std::string& cell = cells[columns[i]];
    wrapped.push_back(column.bars ? std::vector{scaled_bar(cell, column.width, widths[i])}
                                  : wrapped_words(cell, widths[i], widths[i], WideWords::kCut));
    most = std::max(most, wrapped.back().size());
  }
  for (std::size_t line = 0; line < most; ++line) {
    std::string text;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const bool has = line < wrapped[i].size();
      text += std::string(i > 0 ? kColumnGap : 0, ' ') +
              padded(has ? wrapped[i][line] : "", widths[i], table.columns[columns[i]].align);
    }
    out.push_back(text.erase(text.find_last_not_of(' ') + 1));
  }
}

void add_below(const ReadTable& table, const Columns& below, const ReadRow& row, std::size_t indent,
               std::size_t width, std::vector<std::string>& out) {
  const auto add = [&](const std::string& text) {
    if (text.empty()) return;
    for (const std::string& line :
         wrapped_words(text, width - indent, width - indent, WideWords::kKept)) {
      out.push_back(std::string(indent, ' ') + line);
    }
  };
  for (const std::size_t c : below) {
    const std::string& title = table.columns[c].title;
    const bool tells_itself = below.size() == 1 && table.columns[c].width > kLongText;
    const bool named = !tells_itself && !row.cells[c].empty() && !title.empty();
    add((named ? title + ": " : "") + row.cells[c]);
  }
  for (const std::string& text : row.below) add(text);
}

}  // namespace

bool begins_table(const std::vector<std::string>& lines, std::size_t at) {
  return at + 1 < lines.size() && !lines[at].empty() && is_rule(lines[at + 1]);
}

std::size_t end_of_table(const std::vector<std::string>& lines, std::size_t begin) {
  const std::vector<ReadColumn> columns = columns_of(lines[begin + 1]);
  std::size_t end = begin + 2;
  for (; end < lines.size() && !lines[end].empty() && !begins_table(lines, end); ++end) {
    const bool below = lines[end].find_first_not_of(' ') == columns.front().width + kColumnGap;
    if (!below && !is_row(glyphs_of(lines[end]), columns)) break;
  }
  return end;
}

std::vector<std::string> fitted_table(const std::vector<std::string>& lines, std::size_t width) {
  const ReadTable table = read_table(lines);
  const Arrangement set = arrangement_of(table, width);
  const std::size_t names = set.widths.front().front() + kColumnGap;
  const std::size_t indent =
      std::min(names, kMostIndent) <= width / 3 ? std::min(names, kMostIndent) : kColumnGap;
  std::vector<std::string> titles;
  for (const ReadColumn& column : table.columns) titles.push_back(column.title);
  std::vector<std::string> out;
  for (std::size_t b = 0; b < set.blocks.size(); ++b) {
    if (b > 0) out.emplace_back();
    add_lines(table, set.blocks[b], set.widths[b], titles, out);
    std::string rule;
    for (const std::size_t columns : set.widths[b]) {
      rule += rule.empty() ? "" : std::string(kColumnGap, ' ');
      for (std::size_t i = 0; i < columns; ++i) rule += "─";
    }
    out.push_back(rule);
    for (const ReadRow& row : table.rows) {
      add_lines(table, set.blocks[b], set.widths[b], row.cells, out);
      if (b + 1 == set.blocks.size()) add_below(table, set.below, row, indent, width, out);
    }
  }
  return out;
}

}  // namespace stepcast
