// SPDX-License-Identifier: Apache-2.0
// The order that `auto` finds against those of the schedules it competes with.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "schedule/greedy_orders.h"
#include "schedule/order_check.h"
#include "schedule/order_replay.h"
#include "schedule/pass_times.h"
#include "schedule/schedule.h"
#include "schedule/schedule_kind.h"

namespace stepcast {
namespace {

constexpr double kDoesNotFit = std::numeric_limits<double>::infinity();

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  double between(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(engine_);
  }
  std::int64_t up_to(std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(1, n)(engine_);
  }

 private:
  std::mt19937 engine_;
};

Pipeline pipeline_of(std::int64_t stages, std::int64_t micro_batches, std::int64_t chunks) {
  return {stages, chunks, micro_batches, chunks == 1 ? Placement::kStraight : Placement::kFolded};
}

double step_under(const char* name, const Pipeline& pipeline, const PassTimes& times) {
  const auto orders = make_orders(schedule_named(name), pipeline, times);
  const Errors errors = check_orders(orders, pipeline, name);
  EXPECT_TRUE(errors.empty()) << to_string(errors);
  const auto span = replay_orders(pipeline, times, orders);
  return span && has_room(*span, times) ? step_of(*span, times) : kDoesNotFit;
}

double best_of(std::initializer_list<const char*> names, const Pipeline& pipeline,
               const PassTimes& times) {
  double best = kDoesNotFit;
  for (const char* name : names) best = std::min(best, step_under(name, pipeline, times));
  return best;
}

// All stages alike, in times and activations of a stage, of which a chunk takes its share.
struct SplitCase {
  std::int64_t stages, micro_batches;
  ChunkTimes stage;
  double hop, room;
  bool ends_together;

  Pipeline pipeline(std::int64_t chunks) const {
    return pipeline_of(stages, micro_batches, chunks);
  }
  PassTimes times(std::int64_t chunks) const {
    const double share = 1 / static_cast<double>(chunks);
    const ChunkTimes each{stage.forward * share, stage.input_gradient * share,
                          stage.weight_gradient * share, stage.kept, share};
    PassTimes out;
    out.chunks.assign(static_cast<std::size_t>(stages),
                      std::vector(static_cast<std::size_t>(chunks), each));
    out.hop = hop;
    out.room.assign(static_cast<std::size_t>(stages), room);
    out.ends_together = ends_together;
    return out;
  }
};

// V-Min always fits.
SplitCase random_split_case(Random& random) {
  SplitCase c{};
  c.stages = 1 + random.up_to(5);
  c.micro_batches = c.stages * random.up_to(3) + random.up_to(4);
  c.stage.forward = random.between(0.5, 1.5);
  c.stage.input_gradient = random.between(0.8, 1.6) * c.stage.forward;
  c.stage.weight_gradient = random.between(0.5, 1.1) * c.stage.forward;
  c.hop = random.between(0, 0.2) * c.stage.forward;
  const auto p = static_cast<double>(c.stages);
  c.room = random.between(std::ceil((p + 4) / 3), 2 * p);
  c.ends_together = random.up_to(2) == 1;
  return c;
}

// It takes one chunk per stage or two, whichever is shorter: that is what the others have too.
TEST(Auto, IsNeverLongerThanOthersInTheSameMemoryAndShorterInTheMean) {
  Random random(2405);
  double ratios = 0;
  constexpr int kCases = 500;
  for (int i = 0; i < kCases; ++i) {
    const SplitCase c = random_split_case(random);
    const double others = std::min(best_of({"1f1b", "zb-1p", "zb-2p"}, c.pipeline(1), c.times(1)),
                                   best_of({"v-half", "v-min"}, c.pipeline(2), c.times(2)));
    ASSERT_LT(others, kDoesNotFit);
    const double found = std::min(step_under("auto", c.pipeline(1), c.times(1)),
                                  step_under("auto", c.pipeline(2), c.times(2)));
    EXPECT_LE(found, others * (1 + 1e-9)) << i;
    ratios += found / others;
  }
  RecordProperty("mean_ratio", std::to_string(ratios / kCases));
  EXPECT_LT(ratios / kCases, 0.97);
}

PassTimes uneven_times(const Pipeline& pipeline, Random& random) {
  PassTimes out;
  out.hop = random.between(0, 0.3);
  for (std::int64_t stage = 0; stage < pipeline.stages; ++stage) {
    auto& chunks = out.chunks.emplace_back();
    for (std::int64_t chunk = 0; chunk < pipeline.chunks; ++chunk) {
      chunks.push_back({random.between(0.5, 2), random.between(0.5, 2), random.between(0.3, 2),
                        random.between(0, 1), random.between(0.5, 1.5)});
    }
    const auto all = static_cast<double>(pipeline.all_chunks());
    out.room.push_back(random.between(0.6, 2) * all);
  }
  return out;
}

TEST(Auto, IsNeverLongerThanOthersOnUnevenStagesInUnevenRoom) {
  Random random(10241);
  int fit = 0;
  for (int i = 0; i < 100; ++i) {
    const std::int64_t stages = 1 + random.up_to(5);
    const Pipeline pipeline =
        pipeline_of(stages, stages + random.up_to(2 * stages), random.up_to(2));
    const PassTimes times = uneven_times(pipeline, random);
    const double others =
        pipeline.chunks == 1
            ? best_of({"gpipe", "1f1b", "zb-h1", "zb-h2", "zb-1p", "zb-2p"}, pipeline, times)
            : best_of({"zb-v", "1f1b-v", "v-half", "v-min"}, pipeline, times);
    if (others < kDoesNotFit) ++fit;
    EXPECT_LE(step_under("auto", pipeline, times), others * (1 + 1e-9)) << i;
  }
  EXPECT_GT(fit, 50);
}

// If nothing fits, it is the order that lacks least.
TEST(Auto, LacksLeastWhereNothingFits) {
  for (const std::int64_t chunks : {1, 2}) {
    const Pipeline pipeline = pipeline_of(4, 8, chunks);
    PassTimes times;
    times.room.assign(4, 0.5);
    const auto lacks = [&](const char* name) {
      const auto orders = make_orders(schedule_named(name), pipeline, times);
      return std::ranges::max(replay_orders(pipeline, times, orders)->held) - 0.5;
    };
    for (const char* name : chunks == 1 ? std::vector{"1f1b", "zb-h1", "zb-1p", "gpipe"}
                                        : std::vector{"v-min", "v-half", "zb-v"}) {
      EXPECT_LE(lacks("auto"), lacks(name)) << name;
    }
  }
}

// 1F1B on four stages holds 4, 3, 2 and 1 micro-batches: half a one too much on each stage here.
// The last must hold one in every order, so `auto` lacks as little and is no slower.
TEST(Auto, CountsWhatIsLackingByTheRoomOfEachStage) {
  const Pipeline pipeline = pipeline_of(4, 8, 1);
  PassTimes times;
  times.room = {3.5, 2.5, 1.5, 0.5};
  const auto span_of = [&](const char* name) {
    return *replay_orders(pipeline, times, make_orders(schedule_named(name), pipeline, times));
  };
  const OrderSpan found = span_of("auto"), usual = span_of("1f1b");
  for (std::size_t stage = 0; stage < 4; ++stage) {
    EXPECT_LE(found.held[stage], times.room[stage] + 0.5) << stage;
    EXPECT_EQ(usual.held[stage], times.room[stage] + 0.5) << stage;
  }
  EXPECT_LE(step_of(found, times), step_of(usual, times));
}

// With room for two micro-batches a stage begins a third forward only after a gradient; without a
// limit the first stage begins as many as the policy lets it, and gradients of weights may wait.
TEST(GreedyOrders, BeginNoForwardWithoutRoom) {
  const Pipeline pipeline = pipeline_of(4, 8, 1);
  const GreedyPolicy policy{0, 4, 0, 0.5};
  PassTimes times;
  for (const bool limited : {false, true}) {
    if (limited) times.room.assign(4, 2);
    const auto orders = greedy_orders(pipeline, times, policy);
    ASSERT_TRUE(orders) << limited;
    EXPECT_TRUE(check_orders(*orders, pipeline, "greedy").empty());
    const double held = std::ranges::max(replay_orders(pipeline, times, *orders)->held);
    if (limited) {
      EXPECT_EQ(held, 2);
    } else {
      EXPECT_GE(held, 4);
    }
  }
}

}  // namespace
}  // namespace stepcast
