// SPDX-License-Identifier: Apache-2.0
// ZB-V (Qi et al. 2024, arXiv 2401.10241, section 6): each stage has one chunk on the way down and
// one on the way up, so that the model ends where it begins. The rules are those of
// sail-sg/zero-bubble-pipeline-parallelism (39f2c186, scheduler/zbv.py), in words: forwards fill
// the pipeline; then each round gives every stage one input gradient and one forward, of whichever
// chunk has its input. Weight gradients go into the gaps before either, oldest first. Two rules are
// tried both ways, each once more with the gaps that it has found, and the least gap counts.
#include <algorithm>
#include <array>
#include <deque>
#include <optional>

#include "schedule/pass_times.h"
#include "schedule/schedule.h"
#include "schedule/schedule_kind.h"
#include "schedule/stage_clock.h"
#include "schedule/zero_bubble.h"

namespace stepcast {
namespace {

constexpr double kRounding = 1e-9;         // of sums of shares
constexpr std::size_t kDown = 0, kUp = 1;  // local chunks

struct Rules {
  bool fills_before_forwards;
  bool fills_before_early_gradients;  // of the chunk on the way up, whose gradients come first
};

struct Attempt {
  std::vector<StageOrder> orders;
  std::vector<double> idle;  // by stage, since its first forward
  double most_idle() const { return *std::ranges::max_element(idle); }
};

class Filling {
 public:
  // `found`: what stages were idle in an attempt before this one; gaps up to that cost nothing.
  Filling(const Pipeline& pipeline, const PassTimes& times, std::int64_t limit, const Rules& rules,
          const std::vector<double>& found)
      : stages_(pipeline.stages),
        micro_batches_(pipeline.micro_batches),
        times_(times),
        limit_(static_cast<double>(limit) + kRounding),
        rules_(rules),
        found_(found),
        state_(static_cast<std::size_t>(stages_)) {}

  Attempt run() {
    fill();
    while (lacks_gradients()) {
      const std::size_t before = passes();
      gradients();
      forwards();
      // If uneven chunks have filled every stage, one more has to go in before one comes out.
      if (passes() == before) limit_ += 1;
    }
    Attempt out;
    for (std::int64_t j = 0; j < stages_; ++j) {
      while (!at(j).waiting.empty()) put_weights(j);
      out.orders.push_back(std::move(at(j).order));
      out.idle.push_back(at(j).idle);
    }
    return out;
  }

 private:
  struct Stage : StageClock {  // holds chunks of micro-batches
    // When each micro-batch's pass ended, by local chunk.
    std::array<std::vector<double>, 2> forward, gradient;
    std::array<std::int64_t, 2> weights{};
    std::deque<std::size_t> waiting;  // chunks whose next weight gradient may run
  };
  Stage& at(std::int64_t stage) { return state_[static_cast<std::size_t>(stage)]; }
  static std::int64_t count(const std::vector<double>& ends) {
    return static_cast<std::int64_t>(ends.size());
  }
  std::int64_t forwards_of(std::int64_t j, std::size_t chunk) {
    return count(at(j).forward[chunk]);
  }
  std::int64_t gradients_of(std::int64_t j, std::size_t chunk) {
    return count(at(j).gradient[chunk]);
  }
  const ChunkTimes& cost(std::int64_t j, std::size_t chunk) const {
    return times_.of(j, static_cast<std::int64_t>(chunk));
  }

  // The stage that hands on activations of a chunk, and gradients: one before or one behind. The
  // ends of the pipeline hand on to themselves.
  std::int64_t sender_of_forward(std::int64_t j, std::size_t chunk) const {
    return chunk == kDown ? j - 1 : j + 1;
  }
  std::int64_t sender_of_gradient(std::int64_t j, std::size_t chunk) const {
    return chunk == kDown ? j + 1 : j - 1;
  }
  bool is_stage(std::int64_t j) const { return j >= 0 && j < stages_; }
  bool has_forward(std::int64_t j, std::size_t chunk) {
    const std::int64_t own = forwards_of(j, chunk);
    if (own >= micro_batches_ || (chunk == kUp && own >= forwards_of(j, kDown))) return false;
    const std::int64_t from = sender_of_forward(j, chunk);
    return !is_stage(from) || forwards_of(from, chunk) > own;
  }
  bool has_gradient(std::int64_t j, std::size_t chunk) {
    if (gradients_of(j, chunk) >= forwards_of(j, chunk)) return false;
    const std::int64_t from = sender_of_gradient(j, chunk);
    return !is_stage(from) || gradients_of(from, chunk) > gradients_of(j, chunk);
  }
  std::optional<double> arrival(std::int64_t from, const std::vector<double>& received,
                                std::array<std::vector<double>, 2> Stage::*sent,
                                std::size_t chunk) {
    if (!is_stage(from)) return std::nullopt;
    return (at(from).*sent)[chunk][received.size()] + times_.hop;
  }
  std::optional<double> forward_arrives(std::int64_t j, std::size_t chunk) {
    return arrival(sender_of_forward(j, chunk), at(j).forward[chunk], &Stage::forward, chunk);
  }
  std::optional<double> gradient_arrives(std::int64_t j, std::size_t chunk) {
    return arrival(sender_of_gradient(j, chunk), at(j).gradient[chunk], &Stage::gradient, chunk);
  }

  double most_idle(std::int64_t j) const {
    const double idle = stepcast::most_idle(state_);
    if (found_.empty()) return idle;
    return std::max(idle, *std::ranges::max_element(found_) - found_[static_cast<std::size_t>(j)]);
  }

  static Slot slot(Pass pass, std::int64_t micro_batch, std::size_t chunk) {
    return {pass, static_cast<std::int32_t>(micro_batch), static_cast<std::int32_t>(chunk)};
  }
  void put_forward(std::int64_t j, std::size_t chunk) {
    const Slot next = slot(Pass::kForward, forwards_of(j, chunk), chunk);
    at(j).forward[chunk].push_back(
        at(j).put(next, forward_arrives(j, chunk).value_or(0), cost(j, chunk).forward));
    at(j).held += 1;
  }
  void put_gradient(std::int64_t j, std::size_t chunk) {
    const Slot next = slot(Pass::kInputGradient, gradients_of(j, chunk), chunk);
    at(j).gradient[chunk].push_back(
        at(j).put(next, gradient_arrives(j, chunk).value_or(0), cost(j, chunk).input_gradient));
    at(j).held -= 1 - cost(j, chunk).kept;
    at(j).waiting.push_back(chunk);
  }
  void put_weights(std::int64_t j) {
    Stage& stage = at(j);
    const std::size_t chunk = stage.waiting.front();
    stage.waiting.pop_front();
    stage.put(slot(Pass::kWeightGradient, stage.weights[chunk]++, chunk), 0,
              cost(j, chunk).weight_gradient);
    stage.held -= cost(j, chunk).kept;
  }

  bool lacks_gradients() {
    const auto lacks = [&](const Stage& stage) {
      return std::min(count(stage.gradient[kDown]), count(stage.gradient[kUp])) < micro_batches_;
    };
    return std::ranges::any_of(state_, lacks);
  }
  std::size_t passes() const {
    std::size_t out = 0;
    for (const Stage& stage : state_) out += stage.order.size();
    return out;
  }

  void fill();
  void fill_gap(std::int64_t j, std::optional<double> arrives, bool one_more);
  bool runs_late_gradient(std::int64_t j);
  void gradients();
  std::optional<std::size_t> next_forward(std::int64_t j);
  void forwards();

  std::int64_t stages_, micro_batches_;
  const PassTimes& times_;
  double limit_;
  Rules rules_;
  const std::vector<double>& found_;
  std::vector<Stage> state_;
};

// Down and up once; on the way up the stages before take more on their way down while they wait.
// Then every stage gets as many forwards as the one before it.
void Filling::fill() {
  for (std::int64_t j = 0; j < stages_; ++j) put_forward(j, kDown);
  for (std::int64_t j = stages_ - 1; j >= 0; --j) {
    if (const auto arrives = forward_arrives(j, kUp)) {
      while (at(j).held + static_cast<double>(2 + 2 * j) <= limit_ &&
             at(j).end + cost(j, kDown).forward <= *arrives &&
             forwards_of(j, kDown) < micro_batches_) {
        for (std::int64_t before = 0; before <= j; ++before) put_forward(before, kDown);
      }
    }
    put_forward(j, kUp);
  }
  std::size_t chunk = kDown;
  for (std::int64_t j = 1; j < stages_; ++j) {
    const auto all = [&](std::int64_t stage) {
      return forwards_of(stage, kDown) + forwards_of(stage, kUp);
    };
    int idle_turns = 0;  // of either chunk; the rounds that follow put what waits here
    while (idle_turns < 2 &&
           (all(j) < all(j - 1) || (forwards_of(j, kUp) <= forwards_of(j - 1, kUp) &&
                                    forwards_of(j - 1, kUp) < micro_batches_))) {
      const std::size_t before = passes();
      for (std::int64_t behind = stages_ - 1; behind >= j; --behind) {
        if (has_forward(behind, chunk)) put_forward(behind, chunk);
      }
      idle_turns = passes() == before ? idle_turns + 1 : 0;
      chunk = 1 - chunk;
    }
  }
}

// Weight gradients that fit before something arrives, and perhaps one more.
void Filling::fill_gap(std::int64_t j, std::optional<double> arrives, bool one_more) {
  Stage& stage = at(j);
  if (!arrives) return;
  const auto takes = [&] { return cost(j, stage.waiting.front()).weight_gradient; };
  while (!stage.waiting.empty() && stage.end + takes() <= *arrives) put_weights(j);
  const bool is_longest = *arrives - stage.end > most_idle(j) - stage.idle;
  if (!stage.waiting.empty() && is_longest && one_more) put_weights(j);
}

// Whether the next input gradient is of the chunk on the way down.
bool Filling::runs_late_gradient(std::int64_t j) {
  if (gradients_of(j, kDown) >= gradients_of(j, kUp)) return false;
  return has_gradient(j, kDown) || gradients_of(j, kUp) >= micro_batches_;
}

// Late gradients come from the stages behind, and early ones from those before.
void Filling::gradients() {
  std::vector<std::int64_t> late, early;
  for (std::int64_t j = 0; j < stages_; ++j) (runs_late_gradient(j) ? late : early).push_back(j);
  std::ranges::reverse(late);
  for (const std::int64_t j : late) {
    if (!has_gradient(j, kDown)) continue;
    fill_gap(j, gradient_arrives(j, kDown), true);
    put_gradient(j, kDown);
  }
  for (const std::int64_t j : early) {
    if (!has_gradient(j, kUp)) continue;
    fill_gap(j, gradient_arrives(j, kUp), rules_.fills_before_early_gradients);
    put_gradient(j, kUp);
  }
}

std::optional<std::size_t> Filling::next_forward(std::int64_t j) {
  if (forwards_of(j, kUp) >= micro_batches_) return std::nullopt;
  if (forwards_of(j, kUp) >= forwards_of(j, kDown)) return kDown;
  if (has_forward(j, kUp)) return kUp;
  return has_forward(j, kDown) ? std::optional(kDown) : std::nullopt;
}

void Filling::forwards() {
  for (std::int64_t j = 0; j < stages_; ++j) {
    const auto chunk = next_forward(j);
    if (!chunk || !has_forward(j, *chunk)) continue;
    while (at(j).held + 1 > limit_ && !at(j).waiting.empty()) put_weights(j);
    if (at(j).held + 1 > limit_) continue;
    fill_gap(j, forward_arrives(j, *chunk), rules_.fills_before_forwards);
    put_forward(j, *chunk);
  }
}

std::vector<StageOrder> orders(const Pipeline& pipeline, const PassTimes& times) {
  return zero_bubble_v_orders(pipeline, times, 2 * pipeline.stages);
}

}  // namespace

std::vector<StageOrder> zero_bubble_v_orders(const Pipeline& pipeline, const PassTimes& times,
                                             std::int64_t limit) {
  std::optional<Attempt> best;
  for (const bool gradients : {true, false}) {
    for (const bool forwards : {true, false}) {
      const Rules rules{forwards, gradients};
      Attempt found = Filling(pipeline, times, limit, rules, {}).run();
      while (true) {
        Attempt again = Filling(pipeline, times, limit, rules, found.idle).run();
        if (again.most_idle() >= found.most_idle()) break;
        found = std::move(again);
      }
      if (!best || found.most_idle() < best->most_idle()) best = std::move(found);
    }
  }
  return best->orders;
}

extern const Schedule kZbV = {.name = "zb-v",
                              .orders = orders,
                              .placement = Placement::kFolded,
                              .chunks = 2,
                              .splits_backward = true,
                              .validates_after_step = true,
                              .bubble = "0 where f = b = w",
                              .in_flight = "p",
                              .source = "Qi et al. 2024, section 6"};

}  // namespace stepcast
