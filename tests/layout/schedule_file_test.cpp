// SPDX-License-Identifier: Apache-2.0
// A schedule from a file: read with the scenario, checked against its pipeline.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "core/json_tree.h"
#include "layout/pipeline.h"
#include "scenario_from.h"
#include "schedule/schedule.h"

namespace stepcast {
namespace {

// Two stages, two micro-batches.
class ScheduleFile : public ::testing::Test {
 protected:
  ~ScheduleFile() override { std::remove(path_.c_str()); }

  Result<Scenario> read(const std::string& csv, const std::string& more = "") {
    std::ofstream(path_) << csv;
    return read_without(more);
  }
  Result<Scenario> read_without(const std::string& more, int stages = 2, int batch = 2) {
    const std::string pp = std::to_string(stages);
    const auto document = JsonDocument::parse(
        R"({"stepcast": 1, "model": "gpt3-13b", "cluster": {"base": "dgx-a100-80g", "gpus": )" +
            pp + R"(}, "training": {"global_batch": )" + std::to_string(batch) +
            R"(}, "layout": {"pp": )" + pp + R"(, "schedule": "file:)" + path_ + "\"" + more + "}}",
        "scenario.json");
    return read_scenario(**document, testing::source_folders());
  }
  static Error only_error(const Result<Scenario>& result) {
    EXPECT_FALSE(result.has_value());
    if (result) return {};
    EXPECT_EQ(result.error().size(), 1u) << to_string(result.error());
    EXPECT_EQ(result.error().front().path, "layout.schedule");
    return result.error().front();
  }

  std::string path_ = (std::filesystem::temp_directory_path() /
                       ("stepcast-order-" + std::to_string(::getpid()) + ".csv"))
                          .string();
};

constexpr const char* kOneEach = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";

TEST_F(ScheduleFile, IsTheOrderOfItsStages) {
  const auto scenario = read(kOneEach);
  ASSERT_TRUE(scenario.has_value()) << to_string(scenario.error());
  EXPECT_EQ(make_schedule(scenario->layout, 2), make_orders(schedule_named("1f1b"), {2, 1, 2}));
  EXPECT_EQ(to_json(*scenario)["layout"]["schedule"], "file:" + path_);
}

TEST_F(ScheduleFile, NeedsTheMicroBatchesThatItNames) {
  const auto result = read("0F0,0B0\n1F0,1B0\n");
  ASSERT_FALSE(result.has_value());
  ASSERT_EQ(result.error().size(), 2u);  // each row lacks one
  for (const Error& error : result.error()) {
    EXPECT_EQ(error.code, ErrorCode::kIllegal);
    EXPECT_NE(error.message.find("the forward of micro-batch 1"), std::string::npos);
  }
}

TEST_F(ScheduleFile, NamesRowColumnAndCell) {
  const Error error = only_error(read("0F0,0F1,0B0,0X1\n1F0,1B0,1F1,1B1\n"));
  EXPECT_NE(error.message.find(path_ + ", row 1, column 4: '0X1' is not a pass"), std::string::npos)
      << error.message;
}

TEST_F(ScheduleFile, NamesWhatIsMissing) {
  const Error error = only_error(read("0F0,0F1,0B0\n1F0,1B0,1F1,1B1\n"));
  EXPECT_NE(error.message.find("the backward of micro-batch 1 (0B1) is missing"), std::string::npos)
      << error.message;
}

TEST_F(ScheduleFile, MayHaveABackwardInTwoParts) {
  const auto scenario = read("0F0,0F1,0I0,0W0,0B1\n1F0,1B0,1F1,1B1\n");
  ASSERT_TRUE(scenario) << to_string(scenario.error());
  const auto orders = make_schedule(scenario->layout, 2);
  EXPECT_EQ(orders[0][2], (Slot{Pass::kInputGradient, 0, 0}));
  EXPECT_EQ(orders[0][3], (Slot{Pass::kWeightGradient, 0, 0}));
}

// Four stages and twelve micro-batches: what export writes of a schedule, but of one with two
// copies of the model, is read as that order, on the same stages, and may end its step as that
// schedule does.
TEST_F(ScheduleFile, HoldsTheOrderOfEverySchedule) {
  int folded = 0, mirrored = 0;
  for (std::size_t row = 0; row < schedules().size(); ++row) {
    const Schedule& rules = *schedules()[row];
    if (!rules.is_made()) continue;
    const std::int64_t chunks = rules.chunks == Schedule::kSeveral    ? 3
                                : rules.chunks == Schedule::kOneOrTwo ? 2
                                                                      : rules.chunks;
    const Pipeline pipeline{4, chunks, 12, rules.placement};
    const auto orders = make_orders(static_cast<ScheduleKind>(row), pipeline);
    std::ofstream(path_) << to_csv(pipeline, orders);
    const std::string clip =
        rules.validates_after_step ? R"(, "grad_clip": "post_validation")" : "";
    const auto document = JsonDocument::parse(
        R"({"stepcast": 1, "model": "gpt3-13b", "cluster": {"base": "dgx-a100-80g", "gpus": 4},
            "training": {"global_batch": 12)" +
            clip + R"(}, "layout": {"pp": 4, "schedule": "file:)" + path_ +
            R"(", "virtual_stages": )" + std::to_string(chunks) + "}}",
        "scenario.json");
    const auto scenario = read_scenario(**document, testing::source_folders());
    ASSERT_TRUE(scenario.has_value()) << rules.name << to_string(scenario.error());
    EXPECT_EQ(make_schedule(scenario->layout, 12), orders) << rules.name;
    EXPECT_EQ(pipeline_of(scenario->layout).placement, rules.placement) << rules.name;
    EXPECT_EQ(splits_backward(scenario->layout), rules.splits_backward) << rules.name;
    folded += rules.placement == Placement::kFolded ? 1 : 0;
    mirrored += rules.placement == Placement::kMirrored ? 1 : 0;
  }
  EXPECT_GE(folded, 5);
  EXPECT_GE(mirrored, 1);
}

TEST_F(ScheduleFile, ValidatesAfterTheStepOnlyWithASplitBackward) {
  const auto clipped = [&](const std::string& csv) {
    std::ofstream(path_) << csv;
    const auto document = JsonDocument::parse(
        R"({"stepcast": 1, "model": "gpt3-13b", "cluster": {"base": "dgx-a100-80g", "gpus": 2},
            "training": {"global_batch": 2, "grad_clip": "post_validation"},
            "layout": {"pp": 2, "schedule": "file:)" +
            path_ + "\"}}",
        "scenario.json");
    return read_scenario(**document, testing::source_folders());
  };
  EXPECT_TRUE(clipped("0F0,0F1,0I0,0W0,0B1\n1F0,1B0,1F1,1B1\n"));
  const auto whole = clipped(kOneEach);
  ASSERT_FALSE(whole);
  EXPECT_EQ(whole.error().front().path, "training.grad_clip");
}

// Both copies of the model have a chunk on each stage.
TEST_F(ScheduleFile, OfAModelThatStandsTwiceHasTwoChunksPerStage) {
  const Pipeline pipeline{4, 2, 8, Placement::kMirrored};
  std::ofstream(path_) << to_csv(pipeline, make_orders(schedule_named("dualpipe"), pipeline));
  const auto with = [&](const std::string& virtual_stages) {
    return read_without(virtual_stages, 4, 8);
  };
  const auto usual = with("");
  ASSERT_TRUE(usual.has_value()) << to_string(usual.error());
  EXPECT_EQ(usual->layout.virtual_stages, 2);
  for (const char* others : {"1", "3"}) {
    const auto refused = with(std::string(", \"virtual_stages\": ") + others);
    ASSERT_FALSE(refused.has_value());
    EXPECT_TRUE(std::ranges::any_of(refused.error(), [](const Error& error) {
      return error.path == "layout.virtual_stages";
    })) << to_string(refused.error());
  }
}

TEST_F(ScheduleFile, ThatCannotBeReadIsNamed) {
  EXPECT_NE(only_error(read_without("")).message.find("cannot read '" + path_ + "'"),
            std::string::npos);
}

}  // namespace
}  // namespace stepcast
