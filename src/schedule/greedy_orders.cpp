// SPDX-License-Identifier: Apache-2.0
#include "schedule/greedy_orders.h"

#include <array>
#include <deque>
#include <limits>

#include "core/work_limits.h"
#include "schedule/order_replay.h"
#include "schedule/pass_times.h"
#include "schedule/schedule.h"
#include "schedule/stage_clock.h"

namespace stepcast {
namespace {

constexpr double kRounding = 1e-9;  // of sums of shares
constexpr double kNever = std::numeric_limits<double>::infinity();

// Ranks of the forward of the first chunk, that of the last one, the input gradient of the last one
// and that of the first one; a stage with one chunk takes it as the first for forwards and as the
// last for gradients. Lower goes first.
constexpr std::array<std::array<int, 4>, kGreedyPreferences> kPreferences = {
    {{3, 2, 1, 0}, {3, 2, 0, 1}, {3, 0, 1, 2}, {3, 1, 0, 2}, {0, 1, 2, 3}}};

struct Choice {
  Slot slot{};
  double arrives = kNever;
  int rank = 0;
};

class Greedy {
 public:
  Greedy(const Pipeline& pipeline, const PassTimes& times, const GreedyPolicy& policy)
      : pipeline_(pipeline), times_(times), policy_(policy) {
    stages_.resize(static_cast<std::size_t>(pipeline.stages));
    for (Stage& stage : stages_) {
      stage.forward_arrives.resize(static_cast<std::size_t>(pipeline.chunks));
      stage.gradient_arrives.resize(static_cast<std::size_t>(pipeline.chunks));
      stage.forwards.assign(static_cast<std::size_t>(pipeline.chunks), 0);
      stage.gradients = stage.forwards;
    }
  }

  std::optional<std::vector<StageOrder>> run() {
    StopPoint stop;
    while (true) {
      stop.pass();
      std::int64_t first = 0;
      for (std::int64_t j = 1; j < pipeline_.stages; ++j) {
        if (at(j).wakes < at(first).wakes) first = j;
      }
      if (at(first).wakes == kNever) break;
      decide(first);
    }
    const auto all = static_cast<std::size_t>(pipeline_.chunks * pipeline_.micro_batches * 3);
    std::vector<StageOrder> out;
    for (Stage& stage : stages_) {
      if (stage.order.size() < all) return std::nullopt;
      out.push_back(std::move(stage.order));
    }
    return out;
  }

 private:
  struct Stage : StageClock {
    double wakes = 0;       // when it decides next; kNever until another stage sends something
    double last_begin = 0;  // of the chunk with which the model begins
    std::vector<std::vector<double>> forward_arrives, gradient_arrives;  // by chunk
    std::vector<std::int64_t> forwards, gradients;                       // begun, by chunk
    std::deque<Slot> waiting;                                            // weight gradients
  };
  Stage& at(std::int64_t stage) { return stages_[static_cast<std::size_t>(stage)]; }
  std::int64_t model_chunk(std::int64_t stage, std::int64_t chunk) const {
    return chunk_of(pipeline_, stage, chunk);
  }

  Choice forward(std::int64_t j, std::int64_t chunk);
  Choice gradient(std::int64_t j, std::int64_t chunk);
  bool has_room(std::int64_t j, std::int64_t chunk);
  void decide(std::int64_t j);
  void put(std::int64_t j, const Slot& slot, double arrives);
  void hand_on(std::int64_t j, const Slot& slot, double end);

  const Pipeline& pipeline_;
  const PassTimes& times_;
  const GreedyPolicy& policy_;
  std::vector<Stage> stages_;
};

// The first chunk leaves room for a forward of the last one, without which none of its
// micro-batches would ever come back.
bool Greedy::has_room(std::int64_t j, std::int64_t chunk) {
  if (times_.room.empty()) return true;
  double needed = 0;
  for (std::int64_t c = chunk; c < pipeline_.chunks; ++c) needed += times_.of(j, c).activations;
  return at(j).held + needed <= times_.room[static_cast<std::size_t>(j)] * (1 + kRounding);
}

Choice Greedy::forward(std::int64_t j, std::int64_t chunk) {
  Stage& stage = at(j);
  const auto c = static_cast<std::size_t>(chunk);
  const std::int64_t next = stage.forwards[c];
  if (next == pipeline_.micro_batches) return {};
  Choice out{{Pass::kForward, static_cast<std::int32_t>(next), static_cast<std::int32_t>(chunk)},
             kNever,
             kPreferences[static_cast<std::size_t>(policy_.preference)][chunk == 0 ? 0 : 1]};
  if (model_chunk(j, chunk) == 0) {
    if (next - stage.gradients[c] >= policy_.in_flight) return {};
    out.arrives = next == 0 ? 0 : stage.last_begin + policy_.interval;
  } else if (static_cast<std::int64_t>(stage.forward_arrives[c].size()) > next) {
    out.arrives = stage.forward_arrives[c][static_cast<std::size_t>(next)];
  }
  return out;
}

Choice Greedy::gradient(std::int64_t j, std::int64_t chunk) {
  Stage& stage = at(j);
  const auto c = static_cast<std::size_t>(chunk);
  const std::int64_t next = stage.gradients[c];
  if (static_cast<std::int64_t>(stage.gradient_arrives[c].size()) <= next) return {};
  const bool is_last = chunk == pipeline_.chunks - 1;
  return {{Pass::kInputGradient, static_cast<std::int32_t>(next), static_cast<std::int32_t>(chunk)},
          stage.gradient_arrives[c][static_cast<std::size_t>(next)],
          kPreferences[static_cast<std::size_t>(policy_.preference)][is_last ? 2 : 3]};
}

void Greedy::put(std::int64_t j, const Slot& slot, double arrives) {
  Stage& stage = at(j);
  const double end = stage.put(slot, arrives, time_of(times_, j, slot));
  stage.held += growth_of(times_, j, slot);
  stage.wakes = end;
  hand_on(j, slot, end);
}

// The end of a pass lets another one begin: the neighbouring chunk's, or the same chunk's where the
// model turns.
void Greedy::hand_on(std::int64_t j, const Slot& slot, double end) {
  if (slot.pass == Pass::kWeightGradient) return;
  const auto c = static_cast<std::size_t>(slot.chunk);
  const bool forward = slot.pass == Pass::kForward;
  Stage& own = at(j);
  if (forward && model_chunk(j, slot.chunk) == 0) {
    own.last_begin = end - time_of(times_, j, slot);
  }
  ++(forward ? own.forwards : own.gradients)[c];
  if (!forward) own.waiting.push_back({Pass::kWeightGradient, slot.micro_batch, slot.chunk});
  const std::int64_t chunk = model_chunk(j, slot.chunk), last = pipeline_.all_chunks() - 1;
  if (forward && chunk == last) {
    own.gradient_arrives[c].push_back(end);
    return;
  }
  const std::int64_t to = chunk + (forward ? 1 : -1);
  if (to < 0) return;
  const std::int64_t receiver = stage_of_chunk(pipeline_, to, slot.micro_batch);
  Stage& stage = at(receiver);
  const double arrives = end + (receiver == j ? 0 : times_.hop);
  const auto local = static_cast<std::size_t>(to / pipeline_.stages);
  (forward ? stage.forward_arrives : stage.gradient_arrives)[local].push_back(arrives);
  if (receiver != j) stage.wakes = std::min(stage.wakes, std::max(stage.end, arrives));
}

void Greedy::decide(std::int64_t j) {
  Stage& stage = at(j);
  const double now = stage.wakes;
  Choice best;
  double next = kNever;
  bool lacks_room = false;
  const auto consider = [&](const Choice& choice) {
    if (choice.arrives == kNever) return;
    const bool waits_for_room =
        choice.slot.pass == Pass::kForward && !has_room(j, choice.slot.chunk);
    if (waits_for_room) {
      lacks_room = lacks_room || choice.arrives <= now;
    } else if (choice.arrives > now) {
      next = std::min(next, choice.arrives);
    } else if (best.arrives == kNever || choice.rank < best.rank) {
      best = choice;
    }
  };
  for (std::int64_t chunk = 0; chunk < pipeline_.chunks; ++chunk) {
    consider(forward(j, chunk));
    consider(gradient(j, chunk));
  }
  if (best.arrives != kNever) return put(j, best.slot, best.arrives);
  if (!stage.waiting.empty()) {
    const Slot slot = stage.waiting.front();
    const double takes = time_of(times_, j, slot);
    if (lacks_room || next == kNever || now + takes <= next + policy_.delay * takes) {
      stage.waiting.pop_front();
      return put(j, slot, now);
    }
  }
  stage.wakes = next;
}

}  // namespace

std::optional<std::vector<StageOrder>> greedy_orders(const Pipeline& pipeline,
                                                     const PassTimes& times,
                                                     const GreedyPolicy& policy) {
  return Greedy(pipeline, times, policy).run();
}

}  // namespace stepcast
