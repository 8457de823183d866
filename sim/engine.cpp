// SPDX-License-Identifier: Apache-2.0
#include "sim/engine.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "core/assert.h"
#include "core/work_limits.h"
#include "sim/clock_end.h"
#include "sim/event_queue.h"
#include "sim/fluid.h"
#include "sim/stall.h"
#include "sim/wait_graph.h"

namespace stepcast::sim {
namespace {

constexpr std::uint64_t kBetweenLooks = 4096;  // events between two questions whether to stop

class Engine {
 public:
  Engine(const Workload& workload, const Graph& graph, std::vector<RateChange>* rates)
      : workload_(workload),
        tasks_(workload.task_table()),
        members_(workload.member_table()),
        graph_(graph),
        rates_(rates),
        queue_(workload.tasks()),
        fluid_(workload),
        waits_(graph.waits),
        phase_(workload.tasks(), Phase::kWaiting) {
    replay_.tasks.resize(workload.tasks());
  }

  void run() {
    for (std::size_t node = 0; node < waits_.size(); ++node) {
      if (waits_[node] == 0) reach(static_cast<std::int32_t>(node));
    }
    start_ready();
    solve();
    while (!queue_.empty() && !overflow_) {
      if (replay_.events >= next_look_) {
        next_look_ = replay_.events + kBetweenLooks;
        end_if_stopped();
      }
      now_ps_ = queue_.next_time();
      // A task without length ends at the instant of its start, so this is a closure: ends and
      // starts of one instant commute, and the rates are solved once nothing more happens in it.
      while (!queue_.empty() && queue_.next_time() == now_ps_) advance(queue_.pop());
      start_ready();
      if (queue_.empty() || queue_.next_time() != now_ps_) solve();
    }
    replay_.end = {now_ps_};
  }

  bool has_finished() const { return finished_ == tasks_.size(); }
  bool has_overflown() const { return overflow_; }
  TaskId endless() const { return endless_; }  // that overran the clock by itself
  Replay take() { return std::move(replay_); }

  // A flowing task whose rate is 0 when no event is left.
  std::optional<Starvation> starvation() const {
    const auto flowing = std::find(phase_.begin(), phase_.end(), Phase::kFlowing);
    if (flowing == phase_.end()) return std::nullopt;
    Starvation found;
    found.task = TaskId(static_cast<std::size_t>(flowing - phase_.begin()));
    for (const Use& use : workload_.uses_of(found.task.value)) {
      if (fluid_.capacity_left(use.resource.value) <= 0) found.resource = use.resource;
    }
    for (std::size_t h = 0; h < graph_.holders.size(); ++h) {
      const Workload::Member& member = members_[at(graph_.holders[h])];
      if (waits_[tasks_.size() + h] > 0 || phase_[at(member.task)] == Phase::kEnded) continue;
      const Workload::Bond& bond = *workload_.bond_of(member);
      const std::span holds(workload_.holds().data() + bond.hold_begin, at(bond.hold_count));
      const bool holds_it = std::any_of(holds.begin(), holds.end(), [&](const Use& use) {
        return use.resource == found.resource;
      });
      if (holds_it) found.holders.push_back(TaskId(member.task));
    }
    return found;
  }

 private:
  enum class Phase : std::uint8_t {
    kWaiting,
    kLatency,  // loads nothing yet
    kFlowing,  // works at a fluid rate
    kClosing,  // only the end is left
    kEnded,
  };

  static std::size_t at(std::int32_t id) { return static_cast<std::size_t>(id); }

  // Moves a task to its next phase, now that the present one is over.
  void advance(std::int32_t task) {
    switch (phase_[at(task)]) {
      case Phase::kLatency:
        phase_[at(task)] = Phase::kFlowing;
        fluid_.join(task);
        break;
      case Phase::kFlowing:
        fluid_.leave(task);
        log_rate(task, 0);
        close(task, now_ps_);
        break;
      default:
        finish(task);
    }
  }

  // One of the things a node waits for has happened.
  void approach(std::int32_t node) {
    if (--waits_[at(node)] == 0) reach(node);
  }

  void reach(std::int32_t node) {
    if (at(node) < tasks_.size()) {
      ready_.push_back(node);
      return;
    }
    const Workload::Member& member = members_[at(graph_.holders[at(node) - tasks_.size()])];
    fluid_.hold(*workload_.bond_of(member));
    approach(member.task);
  }

  void start_ready() {
    while (!ready_.empty()) {
      const std::int32_t task = ready_.back();
      ready_.pop_back();
      start(task);
    }
  }

  void start(std::int32_t task) {
    const Workload::Kind& entry = workload_.kind_of(task);
    if (entry.latency_ps >= kLongestDuration.ps) end_at_clock(task);
    ++replay_.events;
    replay_.tasks[at(task)].posted = {now_ps_};
    replay_.tasks[at(task)].start = {now_ps_};
    if (graph_.is_constrained[at(task)] != 0) {
      for (const Workload::Member& member : workload_.members_of(task)) {
        const Workload::Bond* bond = workload_.bond_of(member);
        if (bond != nullptr && bond->holds_from_start) fluid_.hold(*bond);
      }
    }
    for (const std::int32_t node : issued_by(task)) approach(node);
    if (entry.use_count == 0 || entry.work == 0) {
      const double flow_ps = entry.work > 0 ? entry.work / entry.rate_bound * 1e12 : 0;
      close(task, after(task, entry.latency_ps, flow_ps));
    } else if (entry.latency_ps > 0) {
      phase_[at(task)] = Phase::kLatency;
      queue_.schedule(task, after(task, entry.latency_ps, 0));
    } else {
      phase_[at(task)] = Phase::kFlowing;
      fluid_.join(task);
    }
  }

  // All work is done at `done_ps`; the task ends then, or at its latest floor.
  void close(std::int32_t task, std::int64_t done_ps) {
    if (graph_.is_constrained[at(task)] != 0) done_ps = std::max(done_ps, floor_of(task));
    phase_[at(task)] = Phase::kClosing;
    if (done_ps == now_ps_) {
      finish(task);
    } else {
      queue_.schedule(task, done_ps);
    }
  }

  void finish(std::int32_t task) {
    ++replay_.events;
    ++finished_;
    phase_[at(task)] = Phase::kEnded;
    replay_.tasks[at(task)].end = {now_ps_};
    if (graph_.is_constrained[at(task)] != 0) {
      for (const Workload::Member& member : workload_.members_of(task)) {
        if (const auto* bond = workload_.bond_of(member)) fluid_.release(*bond);
      }
    }
    for (const std::int32_t node : ended_by(task)) approach(node);
  }

  std::int64_t floor_of(std::int32_t task) {
    std::int64_t floor_ps = 0;
    for (const Workload::Member& member : workload_.members_of(task)) {
      const Workload::Bond* bond = workload_.bond_of(member);
      if (bond == nullptr || bond->floor_ps == 0) continue;
      if (bond->floor_ps >= kLongestDuration.ps) end_at_clock(task);
      floor_ps = std::max(floor_ps, replay_.tasks[at(member.issuer)].start.ps + bond->floor_ps);
    }
    return floor_ps;
  }

  void solve() {
    for (const std::int32_t task : fluid_.solve(now_ps_)) {
      const double rate = fluid_.rate(task);
      log_rate(task, rate);
      if (rate > 0) {
        queue_.schedule(task, after(task, 0, fluid_.remaining_ps(task)));
      } else {
        queue_.cancel(task);
      }
    }
  }

  // The one place where a time in floating point becomes a moment of the clock.
  std::int64_t after(std::int32_t task, std::int64_t latency_ps, double flow_ps) {
    const double length_ps = static_cast<double>(latency_ps) + flow_ps;
    if (!(static_cast<double>(now_ps_) + length_ps < kClockEnd_ps)) {
      overflow_ = true;
      if (!(length_ps < static_cast<double>(kLongestDuration.ps))) end_at_clock(task);
      return now_ps_;
    }
    return now_ps_ + latency_ps + (flow_ps > 0 ? std::llround(flow_ps) : 0);
  }

  void end_at_clock(std::int32_t task) {
    if (!endless_.valid()) endless_ = TaskId(task);
    overflow_ = true;
  }

  void log_rate(std::int32_t task, double rate) {
    if (rates_ != nullptr) rates_->push_back({{now_ps_}, TaskId(task), rate});
  }

  std::span<const std::int32_t> issued_by(std::int32_t task) const {
    return row(graph_.start_begin, graph_.start_nodes, task);
  }
  std::span<const std::int32_t> ended_by(std::int32_t task) const {
    return row(graph_.end_begin, graph_.end_nodes, task);
  }
  static std::span<const std::int32_t> row(const std::vector<std::int32_t>& begin,
                                           const std::vector<std::int32_t>& nodes,
                                           std::int32_t task) {
    const std::int32_t first = begin[at(task)];
    return {nodes.data() + first, at(begin[at(task) + 1] - first)};
  }

  const Workload& workload_;
  const std::vector<Workload::Task>& tasks_;
  const std::vector<Workload::Member>& members_;
  const Graph& graph_;
  std::vector<RateChange>* rates_;
  EventQueue queue_;
  Fluid fluid_;
  std::vector<std::int32_t> waits_;  // by node
  std::vector<Phase> phase_;         // by task
  std::vector<std::int32_t> ready_;
  Replay replay_;
  std::int64_t now_ps_ = 0;
  std::size_t finished_ = 0;
  bool overflow_ = false;
  TaskId endless_;
  std::uint64_t next_look_ = kBetweenLooks;
};

}  // namespace

Result<Replay> replay(const Workload& workload, std::string (*describe)(TaskId, const void*),
                      const void* context, std::vector<RateChange>* rates) {
  const std::shared_ptr<const Graph> graph =
      workload.graph() ? workload.graph() : std::make_shared<const Graph>(make_graph(workload));
  Engine engine(workload, *graph, rates);
  engine.run();
  if (engine.has_overflown()) {
    return failure(clock_error(engine.endless(), {describe, context}));
  }
  if (engine.has_finished()) return engine.take();
  const Describer words{describe, context};
  const std::vector<TaskId> cycle = find_cycle(workload);
  if (!cycle.empty()) return failure(cycle_error(cycle, words));
  const std::optional<Starvation> starvation = engine.starvation();
  STEPCAST_ASSERT(starvation.has_value(), "a halt has a cycle or a starving task behind it");
  return failure(starvation_error(*starvation, words));
}

}  // namespace stepcast::sim
