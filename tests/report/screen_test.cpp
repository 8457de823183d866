// SPDX-License-Identifier: Apache-2.0
#include "report/screen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <sstream>

#include "core/text/escape.h"
#include "report/document_form.h"
#include "report/text_table.h"
#include "report/wrapped_words.h"

namespace stepcast {
namespace {

std::string fitted(const std::string& text, std::size_t width) {
  return fitted_to_screen(terminal_lines(text), width).text();
}

std::size_t widest(const std::string& text) {
  std::size_t out = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out = std::max(out, shown_width(line));
  return out;
}

// All that is no blank, in its order: what laying out may not change.
std::string letters(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c != ' ' && c != '\n') out += c;
  }
  return out;
}

TEST(Screen, LeavesWhatFits) {
  TextTable table({{"name", Align::kLeft}, {"n"}});
  table.add_row({"a b", "12"});
  EXPECT_EQ(fitted_to_screen(table.text(), 40).text(), table.text().text());
  EXPECT_EQ(fitted("one line\n\n  and another\n", 20), "one line\n\n  and another\n");
}

TEST(Screen, GoesOnBelowWithinTheColumn) {
  TextTable table({{"key", Align::kLeft}, {"n"}, {"what it says", Align::kLeft}});
  table.add_row({"one", "1", "a sentence of some words that goes on"});
  table.add_row({"two", "22", "short"});
  // 30 columns: 3, 2 and two gaps leave 21 for the sentence, less than which it would not get.
  EXPECT_EQ(fitted_to_screen(table.text(), 33).text(),
            "key   n  what it says\n"
            "───  ──  ────────────────────────\n"
            "one   1  a sentence of some words\n"
            "         that goes on\n"
            "two  22  short\n");
}

TEST(Screen, MovesALongTextBelowItsRow) {
  TextTable table({{"key", Align::kLeft}, {"what", Align::kLeft}, {"n"}});
  std::string text = "word";
  for (int i = 1; i < 30; ++i) text += " word";
  table.add_row({"one", text, "1"});
  table.add_row({"two", "", "2"});
  const std::string out = fitted_to_screen(table.text(), 40).text();
  EXPECT_EQ(out.substr(0, out.find("word")), "key  n\n───  ─\none  1\n     ");
  EXPECT_LE(widest(out), 40u);
  EXPECT_EQ(out.substr(out.size() - 7), "two  2\n");
  // The words and `two` have them; a sentence needs no title.
  EXPECT_EQ(std::count(out.begin(), out.end(), 'w'), 31);
}

TEST(Screen, SetsFiguresInASecondTable) {
  std::vector<Column> columns{{"name", Align::kLeft}};
  std::vector<std::string> cells{"row"};
  for (int i = 0; i < 6; ++i) {
    columns.push_back({"figure" + std::to_string(i)});
    cells.push_back(std::to_string(i) + "000000");
  }
  TextTable table(columns);
  table.add_row(cells);
  // A name and two figures take 4 + 2 (2 + 7) = 22 of 24 columns.
  EXPECT_EQ(fitted_to_screen(table.text(), 24).text(),
            "name  figure0  figure1\n────  ───────  ───────\nrow   0000000  1000000\n\n"
            "name  figure2  figure3\n────  ───────  ───────\nrow   2000000  3000000\n\n"
            "name  figure4  figure5\n────  ───────  ───────\nrow   4000000  5000000\n");
}

TEST(Screen, LeavesOutColumnsWithoutAWordWhereItIsNarrow) {
  TextTable table({{"name", Align::kLeft}, {"no figure"}, {"n"}});
  table.add_row({"row", "", "1"});
  EXPECT_EQ(fitted_to_screen(table.text(), 10).text(), "name  n\n────  ─\nrow   1\n");
  EXPECT_EQ(fitted_to_screen(table.text(), 18).text(), table.text().text());
}

TEST(Screen, KeepsNotesBelowATableApart) {
  TextTable table({{"key", Align::kLeft}, {"what", Align::kLeft}});
  table.add_row({"one", "some words of a text that is too long for its line"});
  const std::string out = fitted_to_screen(table.text() + bullet("a note", Form::kText), 40).text();
  EXPECT_NE(out.find("\n  a note\n"), std::string::npos) << out;
}

TEST(Screen, DrawsAFrameAnew) {
  EXPECT_EQ(fitted("╭───────────────╮\n│ some more words │\n╰───────────────╯\n", 14),
            "╭───────────╮\n│ some more │\n│   words   │\n╰───────────╯\n");
}

TEST(Screen, ColorsTakeNoColumn) {
  const Written text = colored_line("ten wide..", "1;32", Form::kColored);
  EXPECT_EQ(fitted_to_screen(text, 10).text(), text.text());
}

TEST(Screen, KeepsUnitsPathsAndDocumentsWhole) {
  EXPECT_EQ(fitted("it takes 7.1 s and more\n", 12), "it takes\n  7.1 s and\n  more\n");
  const std::string path = "wrote /a/long/path/that/is/one/word\n";
  EXPECT_EQ(fitted(path, 12), "wrote\n  /a/long/path/that/is/one/word\n");
  const std::string json = "  \"key\": \"some words\",\n";
  EXPECT_EQ(fitted(json, 12), json);
  EXPECT_EQ(fitted("  stepcast plan --model m --gpus 8\n", 24),
            "  stepcast plan \\\n    --model m --gpus 8\n");
}

// A runner of CI takes a line that begins so for a command, with blanks before it too.
TEST(Screen, BeginsNoLineAsACommandOfARunner) {
  const std::string out = fitted("a text with ::error::in its middle\n", 14);
  EXPECT_EQ(out.find("\n  ::error"), std::string::npos) << out;
  EXPECT_NE(out.find("\\::error"), std::string::npos) << out;
}

TEST(Screen, FitsRandomTablesAndLosesNothing) {
  std::mt19937 random(7);
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int turn = 0; turn < 200; ++turn) {
    std::vector<Column> columns;
    for (int c = draw(1, 9); c >= 0; --c) {
      columns.push_back({"t" + std::to_string(c), draw(0, 1) ? Align::kLeft : Align::kRight});
    }
    TextTable table(columns);
    for (int r = draw(1, 4); r > 0; --r) {
      std::vector<std::string> cells;
      for (const Column& column : columns) {
        std::string cell = "w" + std::to_string(draw(0, 999));
        const bool text = column.align == Align::kLeft && &column != &columns.front();
        for (int w = text ? draw(0, 30) : 0; w > 0; --w) cell += " " + std::to_string(draw(0, 99));
        cells.push_back(cell);
      }
      table.add_row(cells);
    }
    const std::size_t width = static_cast<std::size_t>(draw(60, 100));
    const std::string out = fitted_to_screen(table.text(), width).text();
    EXPECT_LE(widest(out), width) << out;
    const std::string whole = letters(out);
    std::istringstream words(table.text().text());
    for (std::string word; words >> word;) {
      if (word[0] == 'w') EXPECT_NE(whole.find(word), std::string::npos) << word << "\n" << out;
    }
  }
}

}  // namespace
}  // namespace stepcast
