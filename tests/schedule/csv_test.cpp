// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "schedule/schedule.h"

namespace stepcast {
namespace {

Layout pipeline(ScheduleKind schedule, std::int64_t pp, std::int64_t virtual_stages = 1) {
  Layout layout;
  layout.schedule = schedule;
  layout.pp = pp;
  layout.virtual_stages = virtual_stages;
  return layout;
}

const Layout kTwoStages = pipeline(ScheduleKind::k1F1B, 2);

TEST(ScheduleCsv, WritesPyTorchsCells) {
  EXPECT_EQ(to_csv(kTwoStages, make_schedule(kTwoStages, 2)), "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
}

TEST(ScheduleCsv, ReadsWhatItWrites) {
  for (const ScheduleKind kind :
       {ScheduleKind::kGpipe, ScheduleKind::k1F1B, ScheduleKind::kInterleaved}) {
    const Layout layout = pipeline(kind, 4, kind == ScheduleKind::kInterleaved ? 3 : 1);
    const auto orders = make_schedule(layout, 8);
    const auto read = from_csv(to_csv(layout, orders), layout, 8, "order.csv");
    ASSERT_TRUE(read.has_value()) << to_string(read.error());
    EXPECT_EQ(*read, orders);
  }
}

TEST(ScheduleCsv, ReadsIdleCellsBlanksAndSplitBackward) {
  const auto read = from_csv("0F0, ,,0I0,0W0\r\n,1F0,1B0,,\n\n", kTwoStages, 1, "order.csv");
  ASSERT_TRUE(read.has_value()) << to_string(read.error());
  EXPECT_EQ(read->front(), (StageOrder{{Pass::kForward, 0, 0},
                                       {Pass::kInputGradient, 0, 0},
                                       {Pass::kWeightGradient, 0, 0}}));
}

TEST(ScheduleCsv, ReadsAFoldedPlacement) {
  const Layout layout = pipeline(ScheduleKind::kZbV, 2, 2);
  const auto read = from_csv("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n", layout, 1, "order.csv");
  ASSERT_TRUE(read.has_value()) << to_string(read.error());
  EXPECT_EQ(read->front()[1], (Slot{Pass::kForward, 0, 1}));
  EXPECT_EQ(to_csv(layout, *read), "0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n");
}

struct Refused {
  const char* text;
  const char* path;
  const char* words;
};

class ScheduleCsvRefuses : public ::testing::TestWithParam<Refused> {};

TEST_P(ScheduleCsvRefuses, NamingThePlaceAndTheReason) {
  const auto read = from_csv(GetParam().text, kTwoStages, 1, "order.csv");
  ASSERT_FALSE(read.has_value());
  const Error& first = read.error().front();
  EXPECT_EQ(first.file, "order.csv");
  EXPECT_EQ(first.path, GetParam().path);
  EXPECT_NE(to_string(first).find(GetParam().words), std::string::npos) << to_string(first);
}

INSTANTIATE_TEST_SUITE_P(
    Table, ScheduleCsvRefuses,
    ::testing::Values(Refused{"", "", "0 rows for pp = 2"},
                      Refused{"0F0,0B0\n", "", "1 rows for pp = 2"},
                      Refused{"0F0,0B0\n1X0,1B0\n", "row 2, column 1", "'1X0' is not a pass"},
                      Refused{"0F,0B0\n1F0,1B0\n", "row 1, column 1", "'0F' is not a pass"},
                      Refused{"0F0,0B0x\n1F0,1B0\n", "row 1, column 2", "'0B0x' is not a pass"},
                      Refused{"0F1,0B0\n1F0,1B0\n", "row 1, column 1", "micro-batch 1"},
                      Refused{"0F0,2B0\n1F0,1B0\n", "row 1, column 2", "model chunk 2"},
                      Refused{"0F0,1B0\n1F0,1B0\n", "row 1, column 2", "it is on row 2"},
                      Refused{"0F0,0B0,0B0\n1F0,1B0\n", "row 1", "stands twice"},
                      Refused{"0F0,0B0,0I0\n1F0,1B0\n", "row 1", "stands twice"},
                      Refused{"0B0,0F0\n1F0,1B0\n", "row 1", "before its forward"},
                      Refused{"0F0,0W0,0I0\n1F0,1B0\n", "row 1", "before its input gradient"},
                      Refused{"0F0\n1F0,1B0\n", "row 1", "backward of micro-batch 0"},
                      Refused{"0F0,0I0\n1F0,1B0\n", "row 1", "is missing"},
                      Refused{"99999999999F0\n1F0,1B0\n", "row 1, column 1", "is not a pass"}));

// Each stage's own order is fine, and each waits for what the other does later.
TEST(ScheduleCsv, NamesTheStagesOfADeadlock) {
  const auto read = from_csv("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n", kTwoStages, 2, "order.csv");
  ASSERT_FALSE(read.has_value());
  ASSERT_EQ(read.error().size(), 2u);
  EXPECT_NE(read.error()[0].message.find("waits for ever"), std::string::npos);
  EXPECT_EQ(read.error()[1].path, "row 2");
}

}  // namespace
}  // namespace stepcast
