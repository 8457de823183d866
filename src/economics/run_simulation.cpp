// SPDX-License-Identifier: Apache-2.0
#include "economics/run_simulation.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <queue>

#include "core/seeded_random.h"

namespace stepcast {
namespace {

// The numbers of the random streams of one seed.
constexpr std::uint64_t kInterruptions = 0, kStragglers = 1;

// What is drawn of one run; it takes some seconds. A run of shorter intervals or more frequent
// interruptions is drawn as far as this reaches.
constexpr std::int64_t kMostDrawn = 30'000'000, kMostSlowTimes = 3'000'000;

double draw_exponential(SeededRandom& random, double rate) {
  return rate > 0 ? -std::log1p(-random.uniform()) / rate : std::numeric_limits<double>::infinity();
}

// The spans of time in which at least one node is slow.
class SlowTimes {
 public:
  SlowTimes(const Hazards& hazards, std::uint64_t seed)
      : rate_(hazards.stragglers.value()),
        duration_(hazards.detection.value()),
        random_(seed, kStragglers),
        arrival_(draw_exponential(random_, rate_)) {}

  // The time within [from, to) that spans cover. Each call must begin where or after the last one
  // ended.
  double within(double from, double to) {
    for (; arrival_ < to && !is_drawn_out(); arrival_ += draw_exponential(random_, rate_)) {
      ++drawn_;
      const double end = arrival_ + duration_;
      if (!spans_.empty() && arrival_ <= spans_.back().end) {
        spans_.back().end = end;
      } else {
        spans_.push_back({arrival_, end});
      }
    }
    while (!spans_.empty() && spans_.front().end <= from) spans_.pop_front();
    double sum = 0;
    for (const Span& span : spans_) {
      sum += std::max(0.0, std::min(to, span.end) - std::max(from, span.begin));
    }
    return sum;
  }

  bool is_drawn_out() const { return drawn_ >= kMostSlowTimes; }

 private:
  struct Span {
    double begin, end;
  };
  double rate_, duration_;
  SeededRandom random_;
  double arrival_;
  std::deque<Span> spans_;
  std::int64_t drawn_ = 0;
};

enum class Interruption { kNone, kFailure, kPreemption };

class RunSimulation {
 public:
  RunSimulation(const Hazards& hazards, Seconds interval, std::uint64_t seed)
      : hazards_(hazards),
        failures_(hazards.process.failures.value()),
        preemptions_(hazards.process.preemptions.value()),
        node_losses_(hazards.node_losses.value()),
        delta_(hazards.process.checkpoint.value()),
        restart_(hazards.process.restart.value()),
        tau_(interval.value()),
        random_(seed, kInterruptions),
        slow_(hazards, seed) {}

  SimulatedRun run(double horizon);

 private:
  // Spends `duration` with the job whole, or less if it is interrupted.
  Interruption spend(double duration);
  bool is_drawn_out() const { return drawn_ >= kMostDrawn || slow_.is_drawn_out(); }
  void train_and_save();
  void come_back();
  void replace_node();
  void keep(double begin, double end);  // training that counts

  const Hazards& hazards_;
  double failures_, preemptions_, node_losses_, delta_, restart_, tau_;
  SeededRandom random_;
  SlowTimes slow_;
  double now_ = 0;
  double useful_ = 0, stragglers_ = 0, checkpoint_ = 0, rework_ = 0, restarting_ = 0, waiting_ = 0;
  std::int64_t interruptions_ = 0, drawn_ = 0;
  std::priority_queue<double, std::vector<double>, std::greater<>> returns_;  // of lost nodes
};

Interruption RunSimulation::spend(double duration) {
  ++drawn_;
  const double until = draw_exponential(random_, failures_ + preemptions_);
  if (until >= duration) {
    now_ += duration;
    return Interruption::kNone;
  }
  now_ += until;
  ++interruptions_;
  const bool failed = random_.uniform() * (failures_ + preemptions_) < failures_;
  return failed ? Interruption::kFailure : Interruption::kPreemption;
}

void RunSimulation::keep(double begin, double end) {
  const double slow = slow_.within(begin, end) * hazards_.slowdown / (1 + hazards_.slowdown);
  useful_ += end - begin - slow;
  stragglers_ += slow;
}

void RunSimulation::replace_node() {
  if (random_.uniform() * (failures_ + preemptions_) >= node_losses_) return;
  returns_.push(now_ + hazards_.away.value());
  while (!returns_.empty() && returns_.top() <= now_) returns_.pop();
  if (static_cast<std::int64_t>(returns_.size()) <= hazards_.spare_nodes) return;
  waiting_ += returns_.top() - now_;
  now_ = returns_.top();
  returns_.pop();
}

void RunSimulation::come_back() {
  for (Interruption again = Interruption::kFailure;
       again != Interruption::kNone && !is_drawn_out();) {
    replace_node();
    const double begin = now_;
    again = spend(restart_);
    restarting_ += now_ - begin;
  }
}

void RunSimulation::train_and_save() {
  const double begin = now_;
  Interruption end = spend(tau_);
  const double trained = now_;
  if (end == Interruption::kNone) {
    end = spend(delta_);
    // A warning comes early enough for the checkpoint to end.
    if (end == Interruption::kPreemption) now_ = trained + delta_;
  } else if (end == Interruption::kPreemption) {
    now_ += delta_;
  }
  if (end == Interruption::kFailure) {
    rework_ += now_ - begin;
  } else {
    keep(begin, trained);
    checkpoint_ += delta_;
  }
  if (end != Interruption::kNone) come_back();
}

SimulatedRun RunSimulation::run(double horizon) {
  while (now_ < horizon && !is_drawn_out()) train_and_save();
  return {{.useful = useful_ / now_,
           .stragglers = stragglers_ / now_,
           .checkpoint = checkpoint_ / now_,
           .rework = rework_ / now_,
           .restart = restarting_ / now_,
           .waiting = waiting_ / now_},
          interruptions_};
}

}  // namespace

SimulatedRun simulate_run(const Hazards& hazards, Seconds interval, Seconds horizon,
                          std::uint64_t seed) {
  return RunSimulation(hazards, interval, seed).run(horizon.value());
}

}  // namespace stepcast
