// SPDX-License-Identifier: Apache-2.0
// DualPipe and DualPipeV against their authors' steps, written out, and against closed forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/each.h"
#include "most_in_flight.h"
#include "schedule/order_replay.h"
#include "schedule/pass_times.h"
#include "schedule/schedule.h"
#include "schedule/schedule_kind.h"

namespace stepcast {
namespace {

Pipeline dual_pipeline(ScheduleKind kind, std::int64_t stages, std::int64_t micro_batches) {
  return {stages, 2, micro_batches, rules_of(kind).placement};
}

// Times of one chunk; `pair` is that of a forward and a whole backward that run together.
struct PassWork {
  double forward, input_gradient, weight_gradient, pair;
  double apart() const { return forward + input_gradient + weight_gradient; }
  double of(Pass pass) const {
    if (pass == Pass::kForward) return forward;
    return (pass == Pass::kWeightGradient ? 0 : input_gradient) +
           (pass == Pass::kInputGradient ? 0 : weight_gradient);
  }
};

// How long all stages take where each forward and the whole backward behind it are one pair, which
// begins when both have what they need, and hands on both results at its end.
class PairedReplay {
 public:
  PairedReplay(const Pipeline& pipeline, const std::vector<StageOrder>& orders,
               const PassWork& work)
      : pipeline_(pipeline), work_(work) {
    for (const StageOrder& order : orders) cut(order);
  }
  double run() {
    std::vector<double> end(steps_.size(), 0);
    std::vector<std::size_t> next(steps_.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t stage = 0; stage < steps_.size(); ++stage) {
        for (; next[stage] < steps_[stage].size(); ++next[stage], moved = true) {
          const StageOrder& step = steps_[stage][next[stage]];
          const double arrives = arrival(stage, step);
          if (arrives < 0) break;
          const bool pairs = step.size() == 2;
          end[stage] =
              std::max(end[stage], arrives) + (pairs ? work_.pair : work_.of(step.front().pass));
          for (const Slot& slot : step) keep(stage, slot, end[stage]);
        }
      }
    }
    for (std::size_t stage = 0; stage < steps_.size(); ++stage) {
      EXPECT_EQ(next[stage], steps_[stage].size()) << "a deadlock";
    }
    return std::ranges::max(end);
  }
  // On the stage that has most of them.
  std::int64_t pairs() const {
    std::int64_t most = 0;
    for (const std::vector<StageOrder>& steps : steps_) {
      most = std::max(most, std::ranges::count(steps, std::size_t{2}, &StageOrder::size));
    }
    return most;
  }

 private:
  void cut(const StageOrder& order) {
    std::vector<StageOrder> steps;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const bool pairs = i + 1 < order.size() && order[i].pass == Pass::kForward &&
                         order[i + 1].pass == Pass::kBackward;
      steps.push_back({order[i]});
      if (pairs) steps.back().push_back(order[++i]);
    }
    steps_.push_back(std::move(steps));
  }
  using Key = std::pair<std::int64_t, std::int32_t>;  // chunk of the model, micro-batch
  Key key(std::size_t stage, const Slot& slot, std::int64_t step = 0) const {
    return {chunk_of(pipeline_, static_cast<std::int64_t>(stage), slot.chunk) + step,
            slot.micro_batch};
  }
  void keep(std::size_t stage, const Slot& slot, double end) {
    if (slot.pass == Pass::kWeightGradient) return;
    (slot.pass == Pass::kForward ? forwards_ : gradients_)[key(stage, slot)] = end;
  }
  // -1: something is not there yet.
  double arrival(std::size_t stage, const StageOrder& step) const {
    double out = 0;
    for (const Slot& slot : step) {
      if (slot.pass == Pass::kWeightGradient) continue;
      const bool forward = slot.pass == Pass::kForward;
      const Key from = key(stage, slot, forward ? -1 : 1);
      if (from.first < 0 || from.first == pipeline_.all_chunks()) continue;
      const auto& ends = forward ? forwards_ : gradients_;
      const auto found = ends.find(from);
      if (found == ends.end()) return -1;
      out = std::max(out, found->second);
    }
    return out;
  }

  const Pipeline& pipeline_;
  PassWork work_;
  std::vector<std::vector<StageOrder>> steps_;
  std::map<Key, double> forwards_, gradients_;
};

// dualpipe.py by hand for 4 ranks and 8 micro-batches, of which 4 to 7 come up. The two ranks at
// the ends wait: 2 forwards of direction 0, one of each, B W F, one round of pairs, B and a pair,
// B and B without W, W and B without W, W. The ranks in the middle have no waiting: 2 forwards of
// each, 2 rounds of pairs, B B, B B without W, W W.
TEST(DualPipe, OrderIsTheAuthorsOwn) {
  const ScheduleKind kind = schedule_named("dualpipe");
  const Pipeline pipeline = dual_pipeline(kind, 4, 8);
  EXPECT_EQ(to_csv(pipeline, make_orders(kind, pipeline)),
            "0F0,0F1,0F2,3F4,3I4,3W4,3F5,0F3,3B5,3F6,0B0,3B6,3F7,0B1,3B7,0I2,0W2,0I3,0W3\n"
            "1F0,2F4,1F1,2F5,1F2,2B4,2F6,1B0,1F3,2B5,2F7,1B1,2B6,1B2,2I7,1I3,2W7,1W3\n"
            "1F4,2F0,1F5,2F1,1F6,2B0,2F2,1B4,1F7,2B1,2F3,1B5,2B2,1B6,2I3,1I7,2W3,1W7\n"
            "0F4,0F5,0F6,3F0,3I0,3W0,3F1,0F7,3B1,3F2,0B4,3B2,3F3,0B5,3B3,0I6,0W6,0I7,0W7\n");
}

// DualPipe's README: bubble (p/2-1)(f&b + b+w - 3w). DualPipeV has 2p chunks on p ranks, so p-1 in
// place of p/2-1. It is what the stage in the middle is idle, or the one where the model turns:
// these run most of their passes in pairs.
TEST(DualPipe, BubbleOfPairsThatRunTogetherIsTheClosedForm) {
  for (const char* name : {"dualpipe", "dualpipev"}) {
    const ScheduleKind kind = schedule_named(name);
    const bool mirrored = rules_of(kind).placement == Placement::kMirrored;
    for (std::int64_t stages = 2; stages <= 12; stages += 2) {
      for (std::int64_t m = 2 * stages; m <= 4 * stages; m += 2) {
        for (const PassWork& work : {PassWork{1, 1, 1, 2}, PassWork{1, 1, 1, 3},
                                     PassWork{10, 11, 8, 24}, PassWork{10, 11, 8, 29}}) {
          const Pipeline pipeline = dual_pipeline(kind, stages, m);
          PairedReplay replay(pipeline, make_orders(kind, pipeline), work);
          const auto passes = static_cast<double>(mirrored ? m : 2 * m);
          const auto pairs = static_cast<double>(replay.pairs());
          const double busy = passes * work.apart() - pairs * (work.apart() - work.pair);
          const auto depth = static_cast<double>(mirrored ? stages / 2 - 1 : stages - 1);
          const double idle = work.pair + work.input_gradient - 2 * work.weight_gradient;
          EXPECT_NEAR(replay.run() - busy, depth * idle, 1e-9)
              << name << " " << stages << " " << m << " " << work.pair;
        }
      }
    }
  }
}

// Passes of a pair that run one after the other hand on the forward's result at once. With f&b = f
// + b+w the closed form is (p/2-1)(f+2b-w) then, and each of those p/2-1 stages waits a backward
// less.
TEST(DualPipe, BubbleOfPassesInARowIsShorter) {
  const ScheduleKind kind = schedule_named("dualpipe");
  for (const PassWork& work : {PassWork{1, 1, 1, 3}, PassWork{10, 11, 8, 29}}) {
    for (std::int64_t stages = 2; stages <= 12; stages += 2) {
      const Pipeline pipeline = dual_pipeline(kind, stages, 2 * stages + 2);
      const ChunkTimes each{work.forward, work.input_gradient, work.weight_gradient};
      PassTimes times;
      times.chunks.assign(static_cast<std::size_t>(stages), {each, each});
      const auto span = replay_orders(pipeline, times, make_orders(kind, pipeline));
      ASSERT_TRUE(span.has_value());
      const double bubble = work.forward + work.input_gradient - work.weight_gradient;
      EXPECT_NEAR(span->makespan,
                  static_cast<double>(2 * stages + 2) * work.apart() +
                      static_cast<double>(stages / 2 - 1) * bubble,
                  1e-9)
          << stages;
    }
  }
}

// README: p+1 activations of a stage on every rank, of DualPipeV 2p+1 of a chunk.
TEST(DualPipe, EveryStageHoldsOneMoreThanThereAreChunks) {
  for (const char* name : {"dualpipe", "dualpipev"}) {
    const ScheduleKind kind = schedule_named(name);
    for (std::int64_t stages = 2; stages <= 16; stages += 2) {
      const Pipeline pipeline = dual_pipeline(kind, stages, 2 * stages);
      for (const StageOrder& order : each_of(make_orders(kind, pipeline))) {
        EXPECT_EQ(most_in_flight(order), pipeline.all_chunks() + 1) << name << " " << stages;
      }
    }
  }
}

// Both copies get the gradients of a chunk in the same order.
TEST(DualPipe, StagesThatMirrorEachOtherRunTheSamePasses) {
  const ScheduleKind kind = schedule_named("dualpipe");
  const Pipeline pipeline = dual_pipeline(kind, 8, 20);
  const auto orders = make_orders(kind, pipeline);
  for (std::size_t stage = 0; stage < 4; ++stage) {
    StageOrder mirrored = orders[7 - stage];
    for (Slot& slot : mirrored) slot.micro_batch = (slot.micro_batch + 10) % 20;
    EXPECT_EQ(mirrored, orders[stage]) << stage;
  }
}

}  // namespace
}  // namespace stepcast
