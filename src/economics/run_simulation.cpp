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
constexpr std::uint64_t kInterruptions = 0, kStragglers = 1, kCorruptions = 2;

// At most this much is drawn of one run, which takes some seconds. A run of shorter intervals or
// more frequent interruptions is drawn as far as this reaches.
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
        slow_(hazards, seed),
        corruption_random_(seed, kCorruptions),
        next_corruption_(draw_exponential(corruption_random_, hazards.corruptions.value())) {}

  SimulatedRun run(double horizon);

 private:
  // Spends `duration` with the job whole, or less if it is interrupted.
  Interruption spend(double duration);
  bool is_drawn_out() const { return drawn_ >= kMostDrawn || slow_.is_drawn_out(); }
  void train_and_save();
  void come_back();
  void replace_node();
  void keep(double begin, double end);       // training that counts, if its check says so
  double missing(double begin, double end);  // throughput times time that lost nodes take
  void check();

  const Hazards& hazards_;
  double failures_, preemptions_, node_losses_, delta_, restart_, tau_;
  SeededRandom random_;
  SlowTimes slow_;
  double now_ = 0;
  double useful_ = 0, stragglers_ = 0, checkpoint_ = 0, rework_ = 0, restarting_ = 0, waiting_ = 0;
  double reduced_ = 0, checks_ = 0;
  // Since the last check: what was trained, the parts of it, and whether a result is wrong.
  struct Unchecked {
    double time = 0, useful = 0, stragglers = 0, reduced = 0;
  } unchecked_;
  SeededRandom corruption_random_;
  double next_corruption_;  // after so much more training
  bool corrupted_ = false;
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

double RunSimulation::missing(double begin, double end) {
  if (!(hazards_.lost_per_node > 0)) return 0;
  while (!returns_.empty() && returns_.top() <= begin) returns_.pop();
  double out = 0;
  while (begin < end) {
    const double until = returns_.empty() ? end : std::min(end, returns_.top());
    const auto away = static_cast<std::int64_t>(returns_.size());
    const double lost = static_cast<double>(std::max<std::int64_t>(0, away - hazards_.spare_nodes));
    out += (until - begin) * std::min(1.0, lost * hazards_.lost_per_node);
    begin = until;
    while (!returns_.empty() && returns_.top() <= begin) returns_.pop();
  }
  return out;
}

void RunSimulation::check() {
  now_ += hazards_.check_time.value();
  checks_ += hazards_.check_time.value();
  if (corrupted_) {
    rework_ += unchecked_.time;
    now_ += restart_;
    restarting_ += restart_;
  } else {
    useful_ += unchecked_.useful;
    stragglers_ += unchecked_.stragglers;
    reduced_ += unchecked_.reduced;
  }
  unchecked_ = {};
  corrupted_ = false;
}

void RunSimulation::keep(double begin, double end) {
  const double period = hazards_.corruptions.value() > 0 ? hazards_.corruption_check.value()
                                                         : std::numeric_limits<double>::infinity();
  while (begin < end) {
    const double until = std::min(end, begin + period - unchecked_.time);
    const double time = until - begin;
    const double slow = slow_.within(begin, until) * hazards_.slowdown / (1 + hazards_.slowdown);
    const double lost = time > 0 ? missing(begin, until) * (1 - slow / time) : 0;
    unchecked_.time += time;
    unchecked_.useful += time - slow - lost;
    unchecked_.stragglers += slow;
    unchecked_.reduced += lost;
    for (next_corruption_ -= time; next_corruption_ < 0;) {
      corrupted_ = true;
      next_corruption_ += draw_exponential(corruption_random_, hazards_.corruptions.value());
    }
    if (until < end || unchecked_.time >= period) check();
    begin = until;
  }
}

void RunSimulation::replace_node() {
  if (random_.uniform() * (failures_ + preemptions_) >= node_losses_) return;
  returns_.push(now_ + hazards_.away.value());
  while (!returns_.empty() && returns_.top() <= now_) returns_.pop();
  if (hazards_.lost_per_node > 0) return;  // the others go on
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
  // No check has seen this work yet: it is not known to be wrong.
  useful_ += unchecked_.useful;
  stragglers_ += unchecked_.stragglers;
  reduced_ += unchecked_.reduced;
  return {{.useful = useful_ / now_,
           .stragglers = stragglers_ / now_,
           .checkpoint = checkpoint_ / now_,
           .rework = rework_ / now_,
           .restart = restarting_ / now_,
           .waiting = waiting_ / now_,
           .reduced = reduced_ / now_,
           .checks = checks_ / now_},
          interruptions_};
}

}  // namespace

SimulatedRun simulate_run(const Hazards& hazards, Seconds interval, Seconds horizon,
                          std::uint64_t seed) {
  return RunSimulation(hazards, interval, seed).run(horizon.value());
}

}  // namespace stepcast
