// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "schedule/schedule.h"

namespace stepcast {
namespace {

constexpr Pipeline kTwoStages{2, 1, 1};

TEST(ScheduleCsv, WritesPyTorchsCells) {
  const Pipeline pipeline{2, 1, 2};
  EXPECT_EQ(to_csv(pipeline, make_orders(schedule_named("1f1b"), pipeline)),
            "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
}

TEST(ScheduleCsv, ReadsWhatItWritesOfEverySchedule) {
  for (std::size_t row = 0; row < schedules().size(); ++row) {
    const Schedule& rules = *schedules()[row];
    if (!rules.is_made()) continue;
    const std::int64_t chunks = rules.chunks == Schedule::kSeveral    ? 3
                                : rules.chunks == Schedule::kOneOrTwo ? 2
                                                                      : rules.chunks;
    const Pipeline pipeline{4, chunks, 8, rules.placement};
    const auto orders = make_orders(static_cast<ScheduleKind>(row), pipeline);
    const CsvForm form = form_of_csv(to_csv(pipeline, orders));
    EXPECT_EQ(form.placement, rules.placement) << rules.name;
    EXPECT_EQ(form.splits_backward, rules.splits_backward) << rules.name;
    const auto read = from_csv(to_csv(pipeline, orders), pipeline, "order.csv");
    ASSERT_TRUE(read.has_value()) << rules.name << to_string(read.error());
    EXPECT_EQ(*read, orders) << rules.name;
  }
}

TEST(ScheduleCsv, ReadsIdleCellsBlanksAndSplitBackward) {
  const auto read = from_csv("0F0, ,,0I0,0W0\r\n,1F0,1B0,,\n\n", kTwoStages, "order.csv");
  ASSERT_TRUE(read.has_value()) << to_string(read.error());
  EXPECT_EQ(read->front(), (StageOrder{{Pass::kForward, 0, 0},
                                       {Pass::kInputGradient, 0, 0},
                                       {Pass::kWeightGradient, 0, 0}}));
}

TEST(ScheduleCsv, ReadsAFoldedPlacement) {
  const Pipeline pipeline{2, 2, 1, Placement::kFolded};
  const auto read = from_csv("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n", pipeline, "order.csv");
  ASSERT_TRUE(read.has_value()) << to_string(read.error());
  EXPECT_EQ(read->front()[1], (Slot{Pass::kForward, 0, 1}));
  EXPECT_EQ(to_csv(pipeline, *read), "0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n");
}

// One stage has no way back, and three chunks of a stage go round.
TEST(ScheduleCsv, TellsHowTheModelStandsByItsFirstRow) {
  EXPECT_EQ(form_of_csv("0F0,1F1,1B1,0B0\n1F0,0F1,1B0,0B1\n").placement, Placement::kMirrored);
  EXPECT_EQ(form_of_csv("\n 0F0,,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n").placement, Placement::kFolded);
  EXPECT_EQ(form_of_csv("0F0,2F0,2B0,0B0\n1F0,3F0,3B0,1B0\n").placement, Placement::kStraight);
  EXPECT_EQ(form_of_csv("0F0,1F0,1B0,0B0\n").placement, Placement::kStraight);
  EXPECT_EQ(form_of_csv("0F0,x,3F0\n1F0\n").placement, Placement::kStraight);
  EXPECT_EQ(form_of_csv("").placement, Placement::kStraight);
}

// Chunk 0 of the micro-batches that come up is on the last row.
TEST(ScheduleCsv, ReadsAMirroredPlacement) {
  const Pipeline pipeline{2, 2, 2, Placement::kMirrored};
  const std::string text = "0F0,1F1,1B1,0B0\n0F1,1F0,1B0,0B1\n";
  const auto read = from_csv(text, pipeline, "order.csv");
  ASSERT_TRUE(read.has_value()) << to_string(read.error());
  EXPECT_EQ(read->back()[1], (Slot{Pass::kForward, 0, 1}));
  EXPECT_EQ(to_csv(pipeline, *read), text);
  const auto swapped = from_csv("0F1,1F1,1B1,0B1\n0F0,1F0,1B0,0B0\n", pipeline, "order.csv");
  ASSERT_FALSE(swapped.has_value());
  EXPECT_EQ(swapped.error().front().hint, "it is on row 2");
}

struct Refused {
  const char* text;
  const char* path;
  const char* words;
};

class ScheduleCsvRefuses : public ::testing::TestWithParam<Refused> {};

TEST_P(ScheduleCsvRefuses, NamingThePlaceAndTheReason) {
  const auto read = from_csv(GetParam().text, kTwoStages, "order.csv");
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

// A quote has 60 bytes: the first 38, "...", and the last 19. An e with an accent has two bytes,
// and of the one that begins at byte 37, the second is the 39th.
TEST(ScheduleCsv, QuotesTheEndsAloneOfACellThatIsAnotherKindOfFile) {
  const std::string cell = std::string(37, 'x') + "\xC3\xA9" + std::string(100000, 'y');
  const auto read = from_csv(cell, kTwoStages, "order.csv");
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().front().message,
            "'" + std::string(37, 'x') + "..." + std::string(19, 'y') + "' is not a pass");
}

// Each stage's own order is fine, and each waits for what the other does later.
TEST(ScheduleCsv, NamesTheCircleOfADeadlock) {
  const auto read = from_csv("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n", Pipeline{2, 1, 2}, "order.csv");
  ASSERT_FALSE(read.has_value());
  ASSERT_EQ(read.error().size(), 1u);
  EXPECT_EQ(read.error()[0].path, "row 1");
  EXPECT_EQ(read.error()[0].message,
            "a deadlock: 0B0 waits for 1B0 of row 2, which stands behind 1F1; 1F1 waits for 0F1 of "
            "row 1, which stands behind 0B0");
}

// Stage 0 only waits; those that wait for each other are 1 and 2.
TEST(ScheduleCsv, NamesNoStageThatOnlyWaitsForTheCircle) {
  const auto read = from_csv("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n2F1,2B1,2F0,2B0\n",
                             Pipeline{3, 1, 2}, "order.csv");
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error()[0].path, "row 2");
  EXPECT_EQ(read.error()[0].message,
            "a deadlock: 1B0 waits for 2B0 of row 3, which stands behind 2F1; 2F1 waits for 1F1 of "
            "row 2, which stands behind 1B0");
}

// Two chunks of one stage can wait for each other too.
TEST(ScheduleCsv, AStageCanWaitForItself) {
  const auto read = from_csv("0F0,0B0,2F0,2B0\n1F0,3F0,3B0,1B0\n", Pipeline{2, 2, 1}, "order.csv");
  ASSERT_FALSE(read.has_value());
  EXPECT_NE(read.error()[0].message.find("a deadlock"), std::string::npos);
}

}  // namespace
}  // namespace stepcast
