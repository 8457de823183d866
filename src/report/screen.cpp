// SPDX-License-Identifier: Apache-2.0
#include "report/screen.h"

#include <algorithm>
#include <string>
#include <vector>

#include "report/screen_table.h"
#include "report/text_table.h"
#include "report/wrapped_words.h"

namespace stepcast {
namespace {

using Lines = std::vector<std::string>;

constexpr std::string_view kGoesOn = " \\";
constexpr std::size_t kFarthestIndent = 40;
constexpr std::size_t kBoxEdges = 4;  // "│ " and " │"

Lines lines_of(const std::string& text) {
  Lines out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

bool fits(const Lines& lines, std::size_t width) {
  return std::ranges::all_of(lines,
                             [&](const std::string& line) { return shown_width(line) <= width; });
}

// Lines of JSON and YAML inside a report are copied into files as they stand.
bool is_of_a_document(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(' ');
  return begin != std::string_view::npos &&
         std::string_view("\"{}[]").find(line[begin]) != std::string_view::npos;
}

// Columns before the lines below a line: they begin under its text, or under the second column of a
// list.
std::size_t indent_of(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(' ');
  const std::size_t gap = line.find("  ", begin);
  if (begin > 0 && gap != std::string_view::npos) {
    const std::size_t second = line.find_first_not_of(' ', gap);
    if (second != std::string_view::npos &&
        shown_width(line.substr(0, second)) <= kFarthestIndent) {
      return shown_width(line.substr(0, second));
    }
  }
  return begin + 2;
}

void add_wrapped(const std::string& line, std::size_t width, Lines& out) {
  if (shown_width(line) <= width || is_of_a_document(line)) {
    out.push_back(line);
    return;
  }
  const std::size_t indent = indent_of(line);
  // The words before the texts of a list keep their blanks.
  std::size_t kept = line.find_first_not_of(' ');
  if (indent > kept + 2) kept = line.find_first_not_of(' ', line.find("  ", kept));
  const std::string before = line.substr(0, kept);
  // A command can be copied with its line ends.
  const bool is_command = line.find("stepcast ") == kept;
  const std::size_t room = width - (is_command ? kGoesOn.size() : 0);
  const Lines words = wrapped_words(line.substr(kept), room - std::min(room, shown_width(before)),
                                    room - indent, WideWords::kKept);
  for (std::size_t i = 0; i < words.size(); ++i) {
    out.push_back((i == 0 ? before : std::string(indent, ' ')) + words[i]);
    if (is_command && i + 1 < words.size()) out.back() += kGoesOn;
  }
}

// A frame around lines, drawn anew around lines that are shorter.
void add_box(const Lines& box, std::size_t width, Lines& out) {
  const std::string side = "│";
  Lines inner;
  for (std::size_t i = 1; i + 1 < box.size(); ++i) {
    std::string text = box[i];
    const std::size_t begin = text.find(side), end = text.rfind(side);
    if (begin != std::string::npos && end > begin) {
      text = text.substr(begin + side.size(), end - begin - side.size());
    }
    text.erase(text.find_last_not_of(' ') + 1);
    add_wrapped(text.substr(std::min(text.find_first_not_of(' '), text.size())), width - kBoxEdges,
                inner);
  }
  std::size_t widest = 0;
  for (const std::string& line : inner) widest = std::max(widest, shown_width(line));
  std::string edge;
  for (std::size_t i = 0; i < widest + 2; ++i) edge += "─";
  out.push_back("╭" + edge + "╮");
  for (const std::string& line : inner) {
    out.push_back(side + " " + line + std::string(widest - shown_width(line), ' ') + " " + side);
  }
  out.push_back("╰" + edge + "╯");
}

}  // namespace

Written fitted_to_screen(const Written& text, std::size_t width) {
  const Lines lines = lines_of(text.text());
  if (fits(lines, width)) return text;
  Lines out;
  for (std::size_t i = 0; i < lines.size();) {
    std::size_t end = i + 1;
    if (begins_table(lines, i)) {
      end = end_of_table(lines, i);
      const Lines table(lines.begin() + static_cast<std::ptrdiff_t>(i),
                        lines.begin() + static_cast<std::ptrdiff_t>(end));
      const Lines set = fits(table, width) ? table : fitted_table(table, width);
      out.insert(out.end(), set.begin(), set.end());
    } else if (lines[i].starts_with("╭")) {
      while (end < lines.size() && !lines[end - 1].starts_with("╰")) ++end;
      const Lines box(lines.begin() + static_cast<std::ptrdiff_t>(i),
                      lines.begin() + static_cast<std::ptrdiff_t>(end));
      if (fits(box, width)) {
        out.insert(out.end(), box.begin(), box.end());
      } else {
        add_box(box, width, out);
      }
    } else {
      add_wrapped(lines[i], width, out);
    }
    i = end;
  }
  std::string joined;
  for (const std::string& line : out) joined += line + "\n";
  return Written::escaped(std::move(joined));
}

}  // namespace stepcast
