// SPDX-License-Identifier: Apache-2.0
// Zero-bubble and V schedules against what their authors' own scheduler makes
// (tests/data/schedules/zero_bubble.json says of which version), and against closed forms.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "core/each.h"
#include "places.h"
#include "schedule/order_check.h"
#include "schedule/order_replay.h"
#include "schedule/pass_times.h"
#include "schedule/schedule.h"
#include "schedule/schedule_kind.h"

namespace stepcast {
namespace {

using nlohmann::json;

const json& published() {
  static const json data = json::parse(
      std::ifstream(source_folder() + "/tests/data/schedules/zero_bubble.json"));
  return data;
}

// Times of a whole stage: a chunk takes its share of them.
struct Work {
  double forward, input_gradient, weight_gradient, hop;
  double total() const { return forward + input_gradient + weight_gradient; }
};

Pipeline pipeline_of(ScheduleKind kind, std::int64_t stages, std::int64_t micro_batches) {
  return {stages, rules_of(kind).chunks, micro_batches, rules_of(kind).placement};
}

PassTimes times_of(const Pipeline& pipeline, const Work& work) {
  const auto chunks = static_cast<double>(pipeline.chunks);
  const ChunkTimes each{work.forward / chunks, work.input_gradient / chunks,
                        work.weight_gradient / chunks, 0.5, 1 / chunks};
  const std::vector<ChunkTimes> stage(static_cast<std::size_t>(pipeline.chunks), each);
  PassTimes out;
  out.chunks.assign(static_cast<std::size_t>(pipeline.stages), stage);
  out.hop = work.hop;
  return out;
}

OrderSpan replay(ScheduleKind kind, const Pipeline& pipeline, const Work& work) {
  const PassTimes times = times_of(pipeline, work);
  const auto span = replay_orders(pipeline, times, make_orders(kind, pipeline, times));
  EXPECT_TRUE(span.has_value()) << "a deadlock";
  return span.value_or(OrderSpan{});
}

// "F0 f0 B0 W0": capitals are of the first chunk, B is an input gradient, D a whole backward.
std::string words_of(const StageOrder& order) {
  std::string out;
  for (const Slot& slot : order) {
    const char letters[][kPasses + 1] = {"FDBW", "fdbw"};
    if (!out.empty()) out += ' ';
    out += letters[slot.chunk][static_cast<std::size_t>(slot.pass)];
    out += std::to_string(slot.micro_batch);
  }
  return out;
}

TEST(ZeroBubble, OrdersAreThoseOfTheAuthorsScheduler) {
  AtLeast peaks(1);
  for (const json& wanted : each_of(published()["orders"])) {
    const ScheduleKind kind = schedule_named(wanted["schedule"].get<std::string>());
    const Pipeline pipeline = pipeline_of(kind, wanted["p"], wanted["m"]);
    const Work work{wanted["f"], wanted["b"], wanted["w"], wanted["hop"]};
    std::vector<std::string> words;
    for (const StageOrder& order : make_orders(kind, pipeline, times_of(pipeline, work))) {
      words.push_back(words_of(order));
    }
    EXPECT_EQ(words, wanted["order"].get<std::vector<std::string>>())
        << wanted["schedule"] << " " << pipeline.stages << " " << pipeline.micro_batches;
    if (!wanted.contains("peak")) continue;
    ++peaks;
    EXPECT_EQ(replay(kind, pipeline, work).held, wanted["peak"].get<std::vector<double>>());
  }
}

TEST(ZeroBubble, SpansAndPeaksAreThoseOfTheAuthorsScheduler) {
  int rows = 0;
  for (const json& row : published()["rows"]) {
    ++rows;
    const ScheduleKind kind = schedule_named(row[0].get<std::string>());
    const Pipeline pipeline = pipeline_of(kind, row[1], row[2]);
    const Work work{row[3], row[4], row[5], row[6]};
    const double busy = static_cast<double>(pipeline.micro_batches) * work.total();
    const OrderSpan span = replay(kind, pipeline, work);
    EXPECT_NEAR(span.longest - busy, row[7].get<double>(), 1e-6) << row;
    EXPECT_NEAR(span.makespan - busy, row[8].get<double>(), 1e-6) << row;
    EXPECT_NEAR(std::ranges::max(span.held), row[9].get<double>(), 1e-9) << row;
  }
  EXPECT_EQ(rows, 360);
}

// It holds for 2 to 32 stages, with four times as many micro-batches; the forms begin with 3.
TEST(ZeroBubble, BubblesAndPeaksOfVHalfAndVMinAreTheClosedForms) {
  for (const char* name : {"v-half", "v-min"}) {
    const ScheduleKind kind = schedule_named(name);
    for (const json& row : each_of(published()["series"][name])) {
      const std::int64_t p = row[0], m = 4 * p;
      const OrderSpan span = replay(kind, pipeline_of(kind, p, m), {1, 1, 1, 0});
      const double held = std::ranges::max(span.held);
      const double bubble = span.longest - 3.0 * static_cast<double>(m);
      EXPECT_DOUBLE_EQ(held, row[1].get<double>()) << name << " " << p;
      EXPECT_DOUBLE_EQ(bubble, row[2].get<double>()) << name << " " << p;
      if (p == 2) continue;
      const auto stages = static_cast<double>(p);
      if (kind == schedule_named("v-half")) {
        EXPECT_EQ(held, static_cast<double>(p / 2 + 1)) << p;
        EXPECT_EQ(bubble, 1.5 * stages - (p % 2 == 0 ? 3.5 : 2)) << p;
      } else {
        EXPECT_EQ(held, static_cast<double>((p + 4 - (p + 1) % 3) / 3)) << p;
        EXPECT_EQ(bubble, 2 * stages - (p % 3 == 0 ? 3.5 : 2.5)) << p;
      }
    }
  }
}

// Fewer micro-batches than stages never fill the pipeline.
TEST(ZeroBubble, VSchedulesHoldNoMoreWithFewMicroBatches) {
  for (const char* name : {"v-half", "v-min", "1f1b-v"}) {
    const ScheduleKind kind = schedule_named(name);
    for (std::int64_t p = 2; p <= 8; ++p) {
      const double most =
          std::ranges::max(replay(kind, pipeline_of(kind, p, 4 * p), {1, 1, 1, 0}).held);
      for (std::int64_t m = 1; m <= 4 * p; ++m) {
        const OrderSpan span = replay(kind, pipeline_of(kind, p, m), {1, 1, 1, 0});
        EXPECT_LE(std::ranges::max(span.held), std::min(most, static_cast<double>(m)))
            << name << " " << p << " " << m;
      }
    }
  }
}

// Chunks of a real model take different times, and hold different shares of memory.
PassTimes uneven_times(const Pipeline& pipeline, std::mt19937& random) {
  const auto between = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  PassTimes out;
  out.hop = between(0, 1);
  for (std::int64_t stage = 0; stage < pipeline.stages; ++stage) {
    auto& chunks = out.chunks.emplace_back();
    for (std::int64_t chunk = 0; chunk < pipeline.chunks; ++chunk) {
      chunks.push_back({between(0.2, 5), between(0.2, 5), between(0.1, 5), between(0, 1)});
    }
  }
  return out;
}

TEST(ZeroBubble, UnevenPassesRunOnceEachWithoutDeadlock) {
  std::mt19937 random(20231130);
  const auto up_to = [&](std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(1, n)(random);
  };
  for (int i = 0; i < 400; ++i) {
    for (const char* name :
         {"zb-h1", "zb-h2", "zb-1p", "zb-2p", "zb-v", "1f1b-v", "v-half", "v-min"}) {
      const ScheduleKind kind = schedule_named(name);
      const std::int64_t stages = up_to(8);
      const Pipeline pipeline = pipeline_of(kind, stages, up_to(3 * stages));
      const auto orders = make_orders(kind, pipeline, uneven_times(pipeline, random));
      const auto errors = check_orders(orders, pipeline, name);
      ASSERT_TRUE(errors.empty()) << to_string(errors);
    }
  }
}

// The authors' scheduler fills a pipeline until every stage has as many forwards as the one before
// it (zbv.py), also where chunks take different times: with fewer, a stage waits for gradients.
TEST(ZeroBubble, ZbVFillsEveryStageWithAsManyForwardsAsTheOneBefore) {
  std::mt19937 random(20231130);
  const ScheduleKind kind = schedule_named("zb-v");
  for (int i = 0; i < 200; ++i) {
    const std::int64_t stages = 2 + i % 7;
    const Pipeline pipeline = pipeline_of(kind, stages, 1 + i % (3 * stages));
    std::ptrdiff_t before = 0;
    for (const StageOrder& order : make_orders(kind, pipeline, uneven_times(pipeline, random))) {
      const auto first_gradient =
          std::ranges::find_if(order, [](const Slot& slot) { return slot.pass != Pass::kForward; });
      const std::ptrdiff_t forwards = first_gradient - order.begin();
      ASSERT_GE(forwards, before) << stages << " " << pipeline.micro_batches;
      before = forwards;
    }
    EXPECT_GE(before, 2);  // one of either chunk
  }
}

// By hand (Qi et al. 2024, section 2.3): (p-1)(f+b-w) where micro-batches fill the pipeline.
TEST(ZeroBubble, BubbleOfZbH1IsTheClosedForm) {
  const ScheduleKind kind = schedule_named("zb-h1");
  for (std::int64_t stages = 1; stages <= 8; ++stages) {
    for (std::int64_t m = stages; m <= 20; ++m) {
      const Pipeline pipeline = pipeline_of(kind, stages, m);
      for (const Work& work : {Work{1, 1, 1, 0}, Work{10, 11, 8, 0}}) {
        const double bubble = work.forward + work.input_gradient - work.weight_gradient;
        EXPECT_DOUBLE_EQ(
            replay(kind, pipeline, work).makespan,
            static_cast<double>(m) * work.total() + static_cast<double>(stages - 1) * bubble);
      }
    }
  }
}

// Equal passes leave ZB-H2 and ZB-V no gap on any stage, once there are enough micro-batches.
TEST(ZeroBubble, EqualPassesLeaveNoGap) {
  for (const char* name : {"zb-h2", "zb-v"}) {
    const ScheduleKind kind = schedule_named(name);
    for (std::int64_t stages = 2; stages <= 8; ++stages) {
      const Pipeline pipeline = pipeline_of(kind, stages, 2 * stages);
      EXPECT_DOUBLE_EQ(replay(kind, pipeline, {1, 1, 1, 0}).longest,
                       3.0 * static_cast<double>(pipeline.micro_batches))
          << name;
    }
  }
}

}  // namespace
}  // namespace stepcast
