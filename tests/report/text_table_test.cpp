// SPDX-License-Identifier: Apache-2.0
#include "report/text_table.h"

#include <gtest/gtest.h>

namespace stepcast {
namespace {

TextTable table_of(std::vector<std::vector<std::string>> rows) {
  TextTable table({{"name", Align::kLeft}, {"value"}});
  for (auto& row : rows) table.add_row(std::move(row));
  return table;
}

TEST(TextTable, AlignsColumnsByCodePoints) {
  EXPECT_EQ(table_of({{"é", "1"}, {"longer", "10.5"}}).text(),
            "name    value\n"
            "──────  ─────\n"
            "é           1\n"
            "longer   10.5\n");
}

TEST(TextTable, EndsNoLineInSpaces) {
  TextTable table({{"a", Align::kLeft}, {"b", Align::kLeft}});
  table.add_row({"x", ""});
  EXPECT_EQ(table.text(), "a  b\n─  ─\nx\n");
}

TEST(TextTable, PutsLongCellsBelowTheirRow) {
  TextTable table({{"place"}, {"why", Align::kLeft, true}, {"time"}});
  table.add_row({"1", "because", "2 s"});
  table.add_row({"2", "", "30 s"});
  EXPECT_EQ(table.text(),
            "place  time\n"
            "─────  ────\n"
            "    1   2 s\n"
            "       because\n"
            "    2  30 s\n");
  EXPECT_EQ(table.markdown(),
            "| place | why | time |\n| ---: | --- | ---: |\n"
            "| 1 | because | 2 s |\n| 2 |  | 30 s |\n");
  EXPECT_EQ(table.csv(), "place,why,time\n1,because,2 s\n2,,30 s\n");
}

TEST(TextTable, EscapesBarsInMarkdown) {
  EXPECT_EQ(table_of({{"a|b", "1"}}).markdown(),
            "| name | value |\n| --- | ---: |\n| a\\|b | 1 |\n");
}

TEST(TextTable, KeepsEachCellOnItsLineWhateverIsInIt) {
  const TextTable table = table_of({{"a\x1b[1m\nb", "<b>\u202e"}});
  EXPECT_EQ(table.text(),
            "name             value\n"
            "───────────  ─────────\n"
            "a\\x1b[1m\\nb  <b>\\u202e\n");
  EXPECT_EQ(table.markdown(),
            "| name | value |\n| --- | ---: |\n"
            "| a\uFFFD\\[1m b | &lt;b>\uFFFD |\n");
  EXPECT_EQ(table.csv(), "name,value\n\"a\uFFFD[1m\nb\",<b>\uFFFD\n");
}

TEST(TextTable, QuotesCsvCellsThatNeedIt) {
  EXPECT_EQ(table_of({{"a,b", "say \"x\""}, {"plain", "1"}}).csv(),
            "name,value\n\"a,b\",\"say \"\"x\"\"\"\nplain,1\n");
}

}  // namespace
}  // namespace stepcast
