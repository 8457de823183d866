// SPDX-License-Identifier: Apache-2.0
// docs/worked-examples.md, "Pipelines": p stages, m micro-batches; the bubble is (p-1)/(m+p-1).
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "layout/layout.h"
#include "layout/pipeline.h"
#include "most_in_flight.h"

namespace stepcast {
namespace {

Layout pipeline(ScheduleKind schedule, std::int64_t stages) {
  Layout layout;
  layout.schedule = schedule;
  layout.pp = stages;
  return layout;
}

// The share of the stages' time that is idle when a forward takes 1 tick, a backward 2 and a
// transfer none: each slot starts when its stage is free and its neighbour's pass has ended.
double bubble(ScheduleKind schedule, std::int64_t stages, std::int64_t micro_batches) {
  const auto orders = make_schedule(pipeline(schedule, stages), micro_batches);
  const auto p = static_cast<std::size_t>(stages), m = static_cast<std::size_t>(micro_batches);
  std::vector<std::vector<int>> forward(p, std::vector<int>(m, -1)), backward = forward;
  std::vector<int> free_at(p, 0);
  std::vector<std::size_t> next(p, 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t stage = 0; stage < p; ++stage) {
      if (next[stage] == orders[stage].size()) continue;
      const Slot& slot = orders[stage][next[stage]];
      const bool is_forward = slot.pass == Pass::kForward;
      const auto batch = static_cast<std::size_t>(slot.micro_batch);
      int ready = 0;
      if (is_forward && stage > 0) ready = forward[stage - 1][batch];
      if (!is_forward && stage + 1 < p) ready = backward[stage + 1][batch];
      if (ready < 0) continue;
      free_at[stage] = std::max(free_at[stage], ready) + (is_forward ? 1 : 2);
      (is_forward ? forward : backward)[stage][batch] = free_at[stage];
      ++next[stage];
      moved = true;
    }
  }
  const int span = *std::max_element(free_at.begin(), free_at.end());
  return 1 - 3.0 * static_cast<double>(micro_batches) / span;
}

// 3/35 and 3/7.
TEST(WorkedPipelines, FourStagesIdle9PercentOf32MicroBatchesAnd43Of4) {
  EXPECT_NEAR(bubble(schedule_named("1f1b"), 4, 32), 0.0857, 5e-5);
  EXPECT_NEAR(bubble(schedule_named("1f1b"), 4, 4), 0.429, 5e-4);
  EXPECT_NEAR(1 - bubble(schedule_named("1f1b"), 4, 4), 0.57, 0.005);
}

// 7/(k+7).
TEST(WorkedPipelines, EightStagesIdle88And64And18Percent) {
  EXPECT_NEAR(bubble(schedule_named("1f1b"), 8, 1), 0.875, 5e-4);
  EXPECT_NEAR(bubble(schedule_named("1f1b"), 8, 4), 0.636, 5e-4);
  EXPECT_NEAR(bubble(schedule_named("1f1b"), 8, 32), 0.179, 5e-4);
}

// m/(m+p-1) for p = 8: 16/23 and 32/39. For any p, 2p/(3p-1) > 2/3 and 4p/(5p-1) > 4/5.
TEST(WorkedPipelines, TwiceTheStagesKeepTwoThirdsBusyAndFourTimesFourFifths) {
  EXPECT_NEAR(1 - bubble(schedule_named("1f1b"), 8, 16), 0.696, 5e-4);
  EXPECT_NEAR(1 - bubble(schedule_named("1f1b"), 8, 32), 0.821, 5e-4);
  for (std::int64_t stages = 2; stages <= 12; ++stages) {
    EXPECT_GT(1 - bubble(schedule_named("1f1b"), stages, 2 * stages), 2.0 / 3) << stages;
    EXPECT_GT(1 - bubble(schedule_named("1f1b"), stages, 4 * stages), 4.0 / 5) << stages;
  }
}

// m/(m+p-1), which depends on p; "1 - 1/m" does not.
TEST(WorkedPipelines, UtilisationDependsOnTheStages) {
  for (const std::int64_t m : {2, 4, 8}) {
    for (const std::int64_t p : {2, 4, 8}) {
      const double busy = 1 - bubble(schedule_named("gpipe"), p, m);
      EXPECT_NEAR(busy, static_cast<double>(m) / static_cast<double>(m + p - 1), 1e-12);
    }
    EXPECT_LT(1 - bubble(schedule_named("gpipe"), 8, m), 1 - 1.0 / static_cast<double>(m));
  }
}

// Idle time stays as it is; stage i of p keeps min(p - i, m) micro-batches instead of m.
TEST(WorkedPipelines, OneForwardOneBackwardShrinksMemoryNotTheBubble) {
  for (const std::int64_t m : {4, 8, 32}) {
    EXPECT_DOUBLE_EQ(bubble(schedule_named("1f1b"), 8, m), bubble(schedule_named("gpipe"), 8, m));
    const auto gpipe = make_schedule(pipeline(schedule_named("gpipe"), 8), m);
    const auto one_each = make_schedule(pipeline(schedule_named("1f1b"), 8), m);
    for (std::int64_t stage = 0; stage < 8; ++stage) {
      const auto i = static_cast<std::size_t>(stage);
      EXPECT_EQ(most_in_flight(gpipe[i]), m);
      EXPECT_EQ(most_in_flight(one_each[i]), std::min(8 - stage, m));
    }
  }
}

}  // namespace
}  // namespace stepcast
