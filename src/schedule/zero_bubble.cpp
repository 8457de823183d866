// SPDX-License-Identifier: Apache-2.0
// The heuristic of sail-sg/zero-bubble-pipeline-parallelism (39f2c186, scheduler/zb.py), in words:
// the pipeline is filled until the first gradient comes back; then each round gives every stage one
// forward, where it may take one, and one input gradient. Weight gradients go into the gaps before
// either. Three rules are tried both ways, and the shortest result counts.
#include "schedule/zero_bubble.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/work_limits.h"
#include "schedule/pass_times.h"
#include "schedule/schedule.h"
#include "schedule/stage_clock.h"

namespace stepcast {
namespace {

constexpr double kRounding = 1e-9;  // of sums of shares

struct Rules {
  bool fills_beyond_first_gradient;  // a forward may delay the first input gradient
  bool gradients_first;              // a stage far ahead of the next one waits with its forwards
  bool fills_every_gap;              // a weight gradient may delay what it is put before
};

struct Attempt {
  std::vector<StageOrder> orders;
  double longest = 0;  // of any stage, from its first begin to its last end
};

class Filling {
 public:
  Filling(const Pipeline& pipeline, const PassTimes& times, std::int64_t limit, const Rules& rules)
      : stages_(pipeline.stages),
        micro_batches_(pipeline.micro_batches),
        times_(times),
        limit_(static_cast<double>(limit) + kRounding),
        rules_(rules),
        state_(static_cast<std::size_t>(stages_)) {
    for (Stage& stage : state_) {
      stage.forward_end.reserve(static_cast<std::size_t>(micro_batches_));
      stage.gradient_end.reserve(static_cast<std::size_t>(micro_batches_));
    }
  }

  // Returns nothing if a stage has no room for its next forward.
  std::optional<Attempt> run() {
    fill();
    StopPoint stop;
    for (std::int64_t round = 1; round < micro_batches_; ++round) {
      stop.pass();
      if (!forwards()) return std::nullopt;
      gradients();
    }
    Attempt out;
    for (std::int64_t j = 0; j < stages_; ++j) {
      while (at(j).weights < micro_batches_) put_weights(j);
      out.longest = std::max(out.longest, at(j).end - at(j).begin);
      out.orders.push_back(std::move(at(j).order));
    }
    return out;
  }

 private:
  struct Stage : StageClock {                               // holds micro-batches
    std::int64_t forwards = 0, gradients = 0, weights = 0;  // done
    std::vector<double> forward_end, gradient_end;
  };
  Stage& at(std::int64_t stage) { return state_[static_cast<std::size_t>(stage)]; }
  const ChunkTimes& cost(std::int64_t stage) const { return times_.of(stage, 0); }
  bool has_weights(std::int64_t j) { return at(j).weights < at(j).gradients; }
  bool has_room(std::int64_t j) { return at(j).held + 1 <= limit_; }

  double forward_arrives(std::int64_t j) {
    const auto next = static_cast<std::size_t>(at(j).forwards);
    return j == 0 ? 0 : at(j - 1).forward_end[next] + times_.hop;
  }
  double gradient_arrives(std::int64_t j) {
    const auto next = static_cast<std::size_t>(at(j).gradients);
    return j == stages_ - 1 ? 0 : at(j + 1).gradient_end[next] + times_.hop;
  }

  double put(std::int64_t j, Pass pass, std::int64_t micro_batch, double arrives, double takes) {
    return at(j).put({pass, static_cast<std::int32_t>(micro_batch), 0}, arrives, takes);
  }
  void put_forward(std::int64_t j) {
    Stage& stage = at(j);
    stage.forward_end.push_back(
        put(j, Pass::kForward, stage.forwards, forward_arrives(j), cost(j).forward));
    ++stage.forwards;
    stage.held += 1;
  }
  void put_gradient(std::int64_t j) {
    Stage& stage = at(j);
    stage.gradient_end.push_back(
        put(j, Pass::kInputGradient, stage.gradients, gradient_arrives(j), cost(j).input_gradient));
    ++stage.gradients;
    stage.held -= 1 - cost(j).kept;
  }
  void put_weights(std::int64_t j) {
    Stage& stage = at(j);
    put(j, Pass::kWeightGradient, stage.weights, 0, cost(j).weight_gradient);
    ++stage.weights;
    stage.held -= cost(j).kept;
  }

  void fill();
  bool may_wait(std::int64_t j);
  bool forwards();
  void gradients();
  void fill_gap(std::int64_t j, double arrives);

  std::int64_t stages_, micro_batches_;
  const PassTimes& times_;
  double limit_;
  Rules rules_;
  std::vector<Stage> state_;
};

// Forwards until the first input gradient comes back, fewer on each stage than on the one before.
void Filling::fill() {
  for (std::int64_t j = 0; j < stages_; ++j) put_forward(j);
  std::vector<std::int64_t> more(state_.size(), 0);
  const auto count = [&](std::int64_t j) -> std::int64_t& {
    return more[static_cast<std::size_t>(j)];
  };
  double gradient = at(stages_ - 1).end + cost(stages_ - 1).input_gradient;
  for (std::int64_t j = stages_ - 2; j >= 0; --j) {
    const double arrives = gradient + times_.hop, takes = cost(j).forward;
    double held = at(j).held;
    double end = at(j).end;
    while (at(j).forwards + count(j) < micro_batches_ && held + 1 <= limit_) {
      const bool too_late =
          rules_.fills_beyond_first_gradient ? end >= arrives : end + takes > arrives;
      if (too_late) break;
      held += 1;
      end += takes;
      ++count(j);
    }
    gradient = std::max(end, arrives) + cost(j).input_gradient;
  }
  for (std::int64_t j = 1; j < stages_; ++j) {
    const bool takes_all = at(j).forwards + count(j) >= micro_batches_;
    const std::int64_t most = takes_all ? count(j - 1) : count(j - 1) - 1;
    count(j) = std::min(count(j), std::max<std::int64_t>(0, most));
  }
  for (std::int64_t j = 0; j < stages_; ++j) {
    for (std::int64_t i = 0; i < count(j); ++i) put_forward(j);
  }
  for (std::int64_t j = stages_ - 1; j >= 0; --j) put_gradient(j);
}

// Whether a stage that is two forwards ahead of the next one loses nothing by waiting with another.
bool Filling::may_wait(std::int64_t j) {
  if (!rules_.gradients_first || j == stages_ - 1) return false;
  if (at(j).forwards < at(j + 1).forwards + 2) return false;
  const double next = at(j + 1).end + cost(j + 1).forward + cost(j + 1).input_gradient + times_.hop;
  if (at(j).end >= next) return true;
  const std::int64_t ready = at(j).gradients - at(j).weights;
  const double excess = std::max(0.0, at(j).held + 1 - limit_);
  const auto needed =
      static_cast<std::int64_t>(std::ceil(excess / std::max(cost(j).kept, kRounding)));
  const double with_forward =
      at(j).end + cost(j).forward +
      static_cast<double>(std::min(needed, ready)) * cost(j).weight_gradient;
  if (with_forward <= next) return false;
  return next - at(j).end <= most_idle(state_) - at(j).idle;
}

// Weight gradients that fit before something arrives, and perhaps one more.
void Filling::fill_gap(std::int64_t j, double arrives) {
  while (has_weights(j) && at(j).end + cost(j).weight_gradient <= arrives) put_weights(j);
  if (!has_weights(j) || at(j).end >= arrives) return;
  const bool is_longest = arrives - at(j).end > most_idle(state_) - at(j).idle;
  if (is_longest || rules_.fills_every_gap) put_weights(j);
}

// One more on each stage that may take it, on none where the next stage takes none.
bool Filling::forwards() {
  std::vector<bool> wanted(state_.size());
  for (std::int64_t j = stages_ - 1; j >= 0; --j) {
    const auto index = static_cast<std::size_t>(j);
    wanted[index] =
        at(j).forwards < micro_batches_ && !may_wait(j) && (j == stages_ - 1 || wanted[index + 1]);
  }
  for (std::int64_t j = 0; j < stages_; ++j) {
    if (!wanted[static_cast<std::size_t>(j)]) continue;
    while (!has_room(j)) {
      if (!has_weights(j)) return false;
      put_weights(j);
    }
    if (j > 0) fill_gap(j, forward_arrives(j));
    put_forward(j);
  }
  return true;
}

void Filling::gradients() {
  for (std::int64_t j = stages_ - 1; j >= 0; --j) {
    if (j < stages_ - 1) fill_gap(j, gradient_arrives(j));
    if (j == 0 && at(j).forwards == micro_batches_) {
      while (has_weights(j)) put_weights(j);
    }
    put_gradient(j);
  }
}

}  // namespace

std::vector<StageOrder> zero_bubble_orders(const Pipeline& pipeline, const PassTimes& times,
                                           std::int64_t limit) {
  Attempt best;
  for (const bool beyond : {false, true}) {
    for (const bool gradients_first : {true, false}) {
      for (const bool every_gap : {true, false}) {
        auto attempt = Filling(pipeline, times, limit, {beyond, gradients_first, every_gap}).run();
        if (!attempt) continue;
        if (best.orders.empty() || attempt->longest < best.longest) best = std::move(*attempt);
      }
    }
  }
  return best.orders;
}

}  // namespace stepcast
