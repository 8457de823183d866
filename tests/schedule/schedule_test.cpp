// SPDX-License-Identifier: Apache-2.0
#include "schedule/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "core/each.h"
#include "most_in_flight.h"
#include "schedule/order_check.h"

namespace stepcast {
namespace {

struct Case {
  ScheduleKind kind;
  Pipeline pipeline;
};

std::vector<StageOrder> orders_of(const Case& c) { return make_orders(c.kind, c.pipeline); }

// Any schedule that has an order may come.
Case random_case(std::mt19937& random) {
  const auto up_to = [&](std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(1, n)(random);
  };
  ScheduleKind kind;
  do {
    const auto rows = static_cast<std::int64_t>(schedules().size());
    kind = static_cast<ScheduleKind>(up_to(rows) - 1);
  } while (!rules_of(kind).is_made());
  const Schedule& rules = rules_of(kind);
  const bool several = rules.chunks == Schedule::kSeveral;
  const std::int64_t chunks = several                               ? 1 + up_to(4)
                              : rules.chunks == Schedule::kOneOrTwo ? up_to(2)
                                                                    : rules.chunks;
  const std::int64_t even = rules.placement == Placement::kMirrored ? 2 : 1;
  const std::int64_t stages = even * (several ? 1 + up_to(7) : up_to(9));
  if (rules.whole_groups && up_to(2) == 1) {  // a last group of as many as stages, or more
    const std::int64_t group = stages + up_to(4) - 1;
    const std::int64_t last = stages - 1 + up_to(group - stages + 1);
    return {kind, {stages, chunks, group * up_to(3) + last, rules.placement, group}};
  }
  const std::int64_t micro_batches =
      rules.whole_groups ? stages * up_to(5) : stages * rules.least_rounds + even * up_to(20);
  return {kind, {stages, chunks, micro_batches, rules.placement}};
}

// Replays the orders where a forward of one chunk takes `forward` and a backward `backward` ticks,
// without transfers; returns the span from the first start to the last end.
std::int64_t replay(const Case& c, std::int64_t forward, std::int64_t backward) {
  const auto orders = orders_of(c);
  const std::int64_t chunks = c.pipeline.all_chunks();
  using Key = std::pair<std::int64_t, std::int32_t>;  // model chunk, micro-batch
  std::map<Key, std::int64_t> ends[2];
  std::vector<std::size_t> next(orders.size(), 0);
  std::vector<std::int64_t> free_at(orders.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t stage = 0; stage < orders.size(); ++stage) {
      for (; next[stage] < orders[stage].size(); ++next[stage], moved = true) {
        const Slot& slot = orders[stage][next[stage]];
        const auto chunk = chunk_of(c.pipeline, static_cast<std::int64_t>(stage), slot.chunk);
        const bool is_forward = slot.pass == Pass::kForward;
        auto& done = ends[is_forward ? 0 : 1];
        const std::int64_t from = is_forward ? chunk - 1 : chunk + 1;
        std::int64_t start = free_at[stage];
        if (from >= 0 && from < chunks) {
          const auto input = done.find({from, slot.micro_batch});
          if (input == done.end()) break;
          start = std::max(start, input->second);
        }
        free_at[stage] = start + (is_forward ? forward : backward);
        done[{chunk, slot.micro_batch}] = free_at[stage];
      }
    }
  }
  EXPECT_EQ(ends[1].size(), static_cast<std::size_t>(chunks * c.pipeline.micro_batches))
      << "a deadlock";
  return *std::ranges::max_element(free_at);
}

TEST(Schedule, GivesEachChunkEachMicroBatchForwardThenBackwardWithoutDeadlock) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const Case c = random_case(random);
    const auto orders = orders_of(c);
    ASSERT_EQ(static_cast<std::int64_t>(orders.size()), c.pipeline.stages);
    const Errors errors = check_orders(orders, c.pipeline, "");
    ASSERT_TRUE(errors.empty()) << to_string(errors);
  }
}

// GPipe and 1F1B: a stage is busy m(f+b) of a span of (m+p-1)(f+b), so that the bubble
// 1 - m/(m+p-1) is (p-1)/(m+p-1).
TEST(Schedule, BubbleOfGpipeAnd1F1BIsTheClosedForm) {
  for (const ScheduleKind kind : {schedule_named("gpipe"), schedule_named("1f1b")}) {
    for (std::int64_t pp = 1; pp <= 8; ++pp) {
      for (std::int64_t m = 1; m <= 20; ++m) {
        EXPECT_EQ(replay({kind, {pp, 1, m}}, 1, 2), (m + pp - 1) * 3) << pp << " " << m;
      }
    }
  }
}

// Interleaved and looped breadth-first: chunks of f+b ticks, busy vm(f+b) of a span of
// (vm+p-1)(f+b).
TEST(Schedule, BubbleOfInterleavedIsTheClosedForm) {
  for (std::int64_t pp = 2; pp <= 8; ++pp) {
    for (std::int64_t v = 2; v <= 4; ++v) {
      for (std::int64_t m = pp; m <= 5 * pp; m += pp) {
        const Case c{schedule_named("interleaved"), {pp, v, m}};
        EXPECT_EQ(replay(c, 1, 2), (v * m + pp - 1) * 3) << pp << " " << v << " " << m;
        EXPECT_EQ(replay(c, 1, 1), (v * m + pp - 1) * 2) << pp << " " << v << " " << m;
        const Case looped{schedule_named("looped-bfs"), c.pipeline};
        EXPECT_EQ(replay(looped, 1, 2), (v * m + pp - 1) * 3) << pp << " " << v << " " << m;
      }
    }
  }
}

TEST(Schedule, OneForwardOneBackwardHoldsTheStagesBehind) {
  for (std::int64_t pp = 1; pp <= 8; ++pp) {
    for (std::int64_t m = 1; m <= 12; ++m) {
      const auto orders = make_orders(schedule_named("1f1b"), {pp, 1, m});
      for (std::int64_t stage = 0; stage < pp; ++stage) {
        EXPECT_EQ(most_in_flight(orders[static_cast<std::size_t>(stage)]), std::min(pp - stage, m));
      }
    }
  }
}

TEST(Schedule, GpipeAndLoopedBfsHoldEveryMicroBatch) {
  for (const StageOrder& order : each_of(make_orders(schedule_named("gpipe"), {4, 1, 9}))) {
    EXPECT_EQ(most_in_flight(order), 9);
  }
  for (const StageOrder& order : each_of(make_orders(schedule_named("looped-bfs"), {4, 3, 9}))) {
    EXPECT_EQ(most_in_flight(order), 27);
  }
}

// Warm-up 2(p-1-stage) + (v-1)p, and the one that the steady state adds; never more than all.
TEST(Schedule, InterleavedHoldsItsWarmUpAndOne) {
  for (std::int64_t pp = 2; pp <= 8; ++pp) {
    for (std::int64_t v = 2; v <= 4; ++v) {
      for (std::int64_t m = pp; m <= 4 * pp; m += pp) {
        const auto orders = make_orders(schedule_named("interleaved"), {pp, v, m});
        for (std::int64_t stage = 0; stage < pp; ++stage) {
          const std::int64_t warm_up = 2 * (pp - 1 - stage) + (v - 1) * pp;
          EXPECT_EQ(most_in_flight(orders[static_cast<std::size_t>(stage)]),
                    std::min(warm_up + 1, v * m));
        }
      }
    }
  }
}

// Warm-up 2(p-1-stage) + (v-1)g with groups of g.
TEST(Schedule, LargerGroupsHoldMore) {
  for (std::int64_t group = 4; group <= 8; ++group) {
    const auto orders =
        make_orders(schedule_named("interleaved"), {4, 2, 2 * group, Placement::kStraight, group});
    for (std::int64_t stage = 0; stage < 4; ++stage) {
      EXPECT_EQ(most_in_flight(orders[static_cast<std::size_t>(stage)]),
                2 * (3 - stage) + group + 1);
    }
  }
}

// Megatron-LM, get_schedule_table: groups of 0 to 2 and of 3 and 4; the last stage is 3 ahead.
TEST(Schedule, TheLastGroupOfInterleavedMayBeShorter) {
  const Pipeline pipeline{2, 2, 5, Placement::kStraight, 3};
  const std::string csv = to_csv(pipeline, make_orders(schedule_named("interleaved"), pipeline));
  EXPECT_EQ(csv.substr(csv.find('\n') + 1),
            "1F0,1F1,1F2,"
            "3F0,3B0,3F1,3B1,3F2,3B2,1F3,1B0,1F4,1B1,3F3,1B2,3F4,3B3,"
            "3B4,1B3,1B4\n");
}

// Narayanan et al. 2021, figure 4, first device: 4 stages, 2 chunks each, 8 micro-batches.
TEST(Schedule, InterleavedFirstStageRunsAsInThePapersFigure) {
  const Pipeline pipeline{4, 2, 8};
  const std::string csv = to_csv(pipeline, make_orders(schedule_named("interleaved"), pipeline));
  EXPECT_EQ(csv.substr(0, csv.find('\n')),
            "0F0,0F1,0F2,0F3,4F0,4F1,4F2,4F3,0F4,0F5,"          // 2*3 + 4 ahead
            "0F6,4B0,0F7,4B1,4F4,4B2,4F5,4B3,4F6,0B0,4F7,0B1,"  // one forward, one backward
            "0B2,0B3,4B4,4B5,4B6,4B7,0B4,0B5,0B6,0B7");
}

TEST(Schedule, ASplitBackwardHoldsItsActivationsUntilTheWeightGradient) {
  const StageOrder order = {{Pass::kForward, 0, 0},       {Pass::kInputGradient, 0, 0},
                            {Pass::kForward, 1, 0},       {Pass::kWeightGradient, 0, 0},
                            {Pass::kInputGradient, 1, 0}, {Pass::kWeightGradient, 1, 0}};
  EXPECT_EQ(most_in_flight(order), 2);
}

}  // namespace
}  // namespace stepcast
