// SPDX-License-Identifier: Apache-2.0
#include "validate/rank_alone.h"

#include <gtest/gtest.h>

#include "core/temporary_folder.h"
#include "made_run.h"
#include "validate/validation.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;

struct Alone {
  explicit Alone(const GptCase& c)
      : scenario(gpt(c)), program(lower(scenario)), grid(scenario.layout) {}
  Scenario scenario;
  Program program;
  RankGrid grid;
};

LeftOut only(const Alone& layout, RankId rank) {
  const RankAlone out = rank_alone(layout.program, layout.grid, rank);
  EXPECT_EQ(out.left_out.size(), 1u);
  return out.left_out.empty() ? LeftOut{} : out.left_out.front();
}

TEST(RankAlone, LeavesOutFourCollectivesALayerAndPass) {
  GptCase c;
  c.tp = 2;
  c.layers = 3;
  c.framework = "native";
  c.tied = false;
  const Alone layout(c);
  const RankAlone out = rank_alone(layout.program, layout.grid, RankId(1));
  ASSERT_FALSE(out.left_out.empty());
  EXPECT_EQ(out.left_out.front().what, "collectives among tp ranks");
  // Two all-reduces of a layer forward and two backward, and those of table, logits and loss.
  EXPECT_GE(out.left_out.front().calls, 4 * c.layers * c.global_batch);
  EXPECT_EQ(out.point.tp, 1);
  EXPECT_EQ(out.ranks, 2);
}

TEST(RankAlone, OfAPipelineLeavesOutTheMessagesOfItsStage) {
  GptCase c;
  c.pp = 4;
  c.framework = "native";
  c.tied = false;
  c.global_batch = 8;
  const Alone layout(c);
  const ByteCount message = ByteCount{c.sequence} * c.hidden * 2;
  for (std::int32_t stage = 0; stage < 4; ++stage) {
    const RankAlone out = rank_alone(layout.program, layout.grid, RankId(stage));
    EXPECT_EQ(out.point.pp, stage);
    const LeftOut& messages = out.left_out.front();
    EXPECT_EQ(messages.what, "messages between stages");
    EXPECT_EQ(messages.calls, (stage == 0 || stage == 3 ? 2 : 4) * c.global_batch);
    EXPECT_EQ(messages.bytes, messages.calls * message);
  }
}

TEST(RankAlone, OfAReplicaLeavesOutItsGradients) {
  GptCase c;
  c.dp = 2;
  c.framework = "native";
  const Alone layout(c);
  const LeftOut reductions = only(layout, RankId(0));
  EXPECT_EQ(reductions.what, "collectives among dp ranks");
  EXPECT_EQ(reductions.bytes, layout.program.roles.front().parameters * 2);
}

// A stage waits a second for each message; a forecast of that rank alone knows of no such wait.
TEST(RankAlone, WaitsForNobodySoItsGapsAreItsOwn) {
  GptCase c;
  c.pp = 2;
  c.framework = "native";
  const Alone layout(c);
  const testing::TemporaryFolder files_here;
  const std::string folder = files_here / "";
  const auto play = [](RankId, const Role& role, std::size_t i, double now) -> MeasuredSpan {
    const Instruction& what = role.instructions[i];
    if (what.is_run()) return {now + 0.25, now + 1};
    return {now, now};
  };
  const RankId rank(1);
  testing::write_rank(folder,
                      testing::played(layout.grid, layout.program, rank, {1000, 1100, 1200}, play));
  const auto files = read_rank_files(folder, layout.program, layout.grid, rank);
  ASSERT_TRUE(files) << to_string(files.error());
  ASSERT_EQ(files->size(), 1u);
  const MeasuredRun run = measure(layout.scenario, layout.program, layout.grid, *files);
  EXPECT_EQ(run.alone, rank);
  EXPECT_EQ(run.critical_rank, rank);
  EXPECT_EQ(run.ranks.front().stage, 1);
  EXPECT_NEAR(run.step_time.median, 100, 1e-9);
  EXPECT_EQ(run.time.bubble.value(), 0);
  for (const TimePartRow& row : kTimeParts) {
    if (row.kind != TimeKind::kExposed) continue;
    EXPECT_EQ((run.time.*row.time).value(), 0) << row.words;
  }
  EXPECT_NEAR(run.time.total().value(), 100, 1e-9);
  EXPECT_EQ(run.tokens_per_s, 0);
  const Validation validation = compare({}, run, {}, {.numerics = {}, .tolerances = {}});
  EXPECT_EQ(validation.figure("tokens_per_s"), nullptr);
  EXPECT_TRUE(validation.passed());
}

TEST(RankAlone, ItsFileIsItsOwn) {
  GptCase c;
  c.pp = 2;
  const Alone layout(c);
  const testing::TemporaryFolder files_here;
  const std::string folder = files_here / "";
  const auto files = read_rank_files(folder, layout.program, layout.grid, RankId(1));
  ASSERT_FALSE(files);
  EXPECT_NE(to_string(files.error()).find("rank-1.json"), std::string::npos);
  EXPECT_EQ(to_string(files.error()).find("rank-0.json"), std::string::npos);
}

}  // namespace
}  // namespace stepcast
