// SPDX-License-Identifier: Apache-2.0
#include "core/text/csv_line.h"

#include <gtest/gtest.h>

namespace stepcast {
namespace {

using Cells = std::vector<std::string>;

TEST(CsvLine, QuotesKeepCommasAndStandTwiceForThemselves) {
  EXPECT_EQ(cells_of_csv_line(""), Cells{""});
  EXPECT_EQ(cells_of_csv_line("a,,b"), (Cells{"a", "", "b"}));
  EXPECT_EQ(cells_of_csv_line(R"("a,b",c)"), (Cells{"a,b", "c"}));
  EXPECT_EQ(cells_of_csv_line(R"("say ""no""",1)"), (Cells{R"(say "no")", "1"}));
  EXPECT_EQ(cells_of_csv_line("a,b,c", 2), (Cells{"a", "b"}));
}

}  // namespace
}  // namespace stepcast
