// SPDX-License-Identifier: Apache-2.0
#include "predict/host_plan.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/work_limits.h"
#include "program/pass_pair.h"
#include "sim/clock_end.h"

namespace stepcast {
namespace {

// The most that rounding to the clock may take from a time in floating point.
constexpr std::int64_t kRoundingPs = 2;

// Moments on a segment's clock, which ends where that of the replay does.
std::int64_t bounded(std::int64_t a_ps, std::int64_t b_ps) {
  return sim::bounded_sum({a_ps}, {b_ps}).ps;
}

class HostPlanner {
 public:
  HostPlanner(const SimulationInput& input, TransferShapes& shapes,
              std::span<const std::int32_t> classes, bool shares_processor)
      : in_(input),
        shapes_(shapes),
        classes_(classes),
        class_(classes.front()),
        list_(input.costs.role(class_).instructions),
        shares_processor_(shares_processor),
        issued_(list_.size()) {
    plan_.issuer.assign(list_.size(), HostPlan::kUnbound);
  }

  HostPlan plan() {
    StopPoint stop;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(list_.size()); ++i) {
      stop.pass();
      const Instruction& what = list_[static_cast<std::size_t>(i)];
      if (is_idle(what, in_.grid)) continue;
      if (what.is<HostWait>()) {
        synchronise(i);
      } else if (alternates(what) && !leads_pair(what)) {
        issued(i) = issued(i - 1);  // the pair is all in the first of the two
      } else if (what.is_run() && !in_.stamped(class_, i).empty()) {
        run_in_parts(i);
      } else if (what.is_run()) {
        run(i, what);
      } else {
        transfer(i, what);
      }
    }
    settle(static_cast<std::int32_t>(list_.size()));
    return std::move(plan_);
  }

 private:
  // Holds what is known of an instruction's device task. A *segment* is the time between two waits
  // of the host; its clock counts what the host has spent in it.
  struct Issued {
    bool has_task = false;
    // A run of the computing stream that has ended when it ends; such a run: itself.
    std::int32_t follows = kNoInstruction;
    std::int32_t segment = kNoInstruction;
    std::int64_t end_ps = 0;  // on its segment's clock, it ends no earlier
  };
  Issued& issued(std::int32_t i) { return issued_[static_cast<std::size_t>(i)]; }

  void run(std::int32_t i, const Instruction& what);
  void run_in_parts(std::int32_t i);
  void transfer(std::int32_t i, const Instruction& what);
  void synchronise(std::int32_t i);
  void emit(std::int32_t i, std::int64_t latency_ps, bool is_extendable);
  void settle(std::int32_t i);
  bool starts_as_issued(std::int32_t i);
  const Waits& awaited(std::int32_t i) const {
    return in_.costs.waits(class_, static_cast<std::size_t>(i));
  }
  // A run of the computing stream that has ended when all that the instruction waits for has.
  std::int32_t followed_by_waits(std::int32_t i);
  Waits waits_of(std::int32_t i);
  std::int64_t least_ps(const Instruction& transfer);  // of all classes
  // The earliest end on the clock of this segment; negative where nothing is known.
  std::int64_t end_of(std::int32_t i) {
    return i != kNoInstruction && issued(i).segment == segment_ ? issued(i).end_ps : -1;
  }
  // The earliest end of what the instruction waits for, without its issue.
  std::int64_t end_of_waits(std::int32_t i);
  bool has_pending_waits() const { return !pending_waits_.empty(); }

  const SimulationInput& in_;
  TransferShapes& shapes_;
  std::span<const std::int32_t> classes_;
  std::int32_t class_;  // one of them: runs of all cost the same
  const std::vector<Instruction>& list_;
  bool shares_processor_;
  HostPlan plan_;
  std::vector<Issued> issued_;
  std::int32_t last_on_compute_ = kNoInstruction;
  std::int32_t segment_ = 0;
  std::int64_t clock_ps_ = 0;
  // Host work and waits that no task of the plan has yet.
  std::int64_t pending_ps_ = 0;
  Waits pending_waits_;
  bool waits_bind_ = false;     // the pending waits end after all that the host did before
  bool is_extendable_ = false;  // nothing waits for the end of the plan's last task
};

// The waits that have a task, in order of instruction.
Waits HostPlanner::waits_of(std::int32_t i) {
  Waits out;
  for (const std::int32_t wait : awaited(i)) {
    if (issued(wait).has_task) out.add(wait);
  }
  std::sort(out.begin(), out.end());
  return out;
}

void HostPlanner::emit(std::int32_t i, std::int64_t latency_ps, bool is_extendable) {
  plan_.tasks.push_back({i, {bounded(pending_ps_, latency_ps)}, pending_waits_});
  pending_ps_ = 0;
  pending_waits_ = {};
  waits_bind_ = false;
  is_extendable_ = is_extendable;
}

// Gives everything pending to a task, so that the next one begins when the host is free.
void HostPlanner::settle(std::int32_t i) {
  if (!has_pending_waits() && pending_ps_ == 0) return;
  if (!has_pending_waits() && is_extendable_) {
    std::int64_t& latency_ps = plan_.tasks.back().latency.ps;
    latency_ps = bounded(latency_ps, std::exchange(pending_ps_, 0));
    return;
  }
  emit(i, 0, true);
}

std::int64_t HostPlanner::end_of_waits(std::int32_t i) {
  const Instruction& what = list_[static_cast<std::size_t>(i)];
  std::int64_t end_ps = what.stream == Stream::kCompute ? end_of(last_on_compute_) : -1;
  for (const std::int32_t wait : awaited(i)) end_ps = std::max(end_ps, end_of(wait));
  return end_ps;
}

void HostPlanner::synchronise(std::int32_t i) {
  // When the waits end after everything that the host has done, the host's work does not show.
  const bool binds = end_of_waits(i) >= clock_ps_;
  if (!binds) settle(i);
  waits_bind_ = binds;
  pending_ps_ = 0;
  pending_waits_ = waits_of(i);
  ++segment_;
  clock_ps_ = 0;
}

std::int32_t HostPlanner::followed_by_waits(std::int32_t i) {
  std::int32_t follows = kNoInstruction;
  for (const std::int32_t wait : awaited(i)) follows = std::max(follows, issued(wait).follows);
  return follows;
}

// The host and the run wait for the same instructions, and for nothing else.
bool HostPlanner::starts_as_issued(std::int32_t i) {
  const Instruction& what = list_[static_cast<std::size_t>(i)];
  if (what.stream != Stream::kCompute || shares_processor_ || !waits_bind_ || pending_ps_ > 0 ||
      last_on_compute_ == kNoInstruction) {
    return false;
  }
  if (!(waits_of(i) == pending_waits_)) return false;
  return std::any_of(pending_waits_.begin(), pending_waits_.end(),
                     [&](std::int32_t wait) { return issued(wait).follows == last_on_compute_; });
}

void HostPlanner::run(std::int32_t i, const Instruction& what) {
  const RunCost& cost = in_.costs.run(class_, what);
  const std::int64_t host_ps = sim::duration(cost.host).ps;
  const std::int64_t floor_ps = bounded(clock_ps_, sim::duration(cost.floor).ps);
  const std::int64_t gpu_ps = sim::duration(cost.gpu).ps - kRoundingPs;
  const std::int64_t free_ps = end_of_waits(i);
  std::int32_t& issuer = plan_.issuer[static_cast<std::size_t>(i)];
  if (free_ps >= clock_ps_ && free_ps + gpu_ps >= floor_ps) {
    pending_ps_ = bounded(pending_ps_, host_ps);
  } else if (starts_as_issued(i)) {
    issuer = HostPlan::kAsIssued;
    pending_ps_ = host_ps;
  } else {
    if (pending_ps_ > 0) settle(i);
    issuer = static_cast<std::int32_t>(plan_.tasks.size());
    emit(i, host_ps, true);
  }
  const bool on_compute = what.stream == Stream::kCompute;
  issued(i) = {true, on_compute ? i : followed_by_waits(i), segment_,
               std::max(bounded(std::max(free_ps, clock_ps_), gpu_ps), floor_ps)};
  clock_ps_ = bounded(clock_ps_, host_ps);
  if (on_compute) last_on_compute_ = i;
}

// Each of its tasks is issued by itself, unless the host is ahead of all of them.
void HostPlanner::run_in_parts(std::int32_t i) {
  const PassTasks& pass = in_.tasks_of_pass(class_, i);
  std::int64_t host_ps = 0;
  for (const PassTask& task : pass.tasks) host_ps = bounded(host_ps, sim::duration(task.host).ps);
  const std::int64_t free_ps = end_of_waits(i);
  const std::int64_t lead_ps = sim::duration(pass.bounds.lead).ps + kRoundingPs;
  if (free_ps >= bounded(clock_ps_, lead_ps)) {
    pending_ps_ = bounded(pending_ps_, host_ps);
  } else {
    settle(i);
    plan_.issuer[static_cast<std::size_t>(i)] = HostPlan::kByTask;
    is_extendable_ = false;
  }
  const std::int64_t least_ps = sim::duration(pass.bounds.least).ps -
                                kRoundingPs * static_cast<std::int64_t>(pass.tasks.size());
  clock_ps_ = bounded(clock_ps_, host_ps);
  const std::int64_t end_ps = free_ps >= 0 ? bounded(free_ps, least_ps) : 0;
  issued(i) = {true, i, segment_, std::max(end_ps, clock_ps_)};
  last_on_compute_ = i;
}

std::int64_t HostPlanner::least_ps(const Instruction& transfer) {
  std::int64_t least_ps = std::numeric_limits<std::int64_t>::max();
  for (const std::int32_t c : classes_) {
    least_ps = std::min(least_ps, shapes_.shape(c, transfer).least_ps());
  }
  return least_ps;
}

void HostPlanner::transfer(std::int32_t i, const Instruction& what) {
  const bool on_compute = what.stream == Stream::kCompute;
  std::int32_t follows = on_compute && last_on_compute_ != kNoInstruction
                             ? issued(last_on_compute_).follows
                             : kNoInstruction;
  follows = std::max(follows, followed_by_waits(i));
  const std::int64_t launch_ps = sim::duration(in_.costs.launch(what)).ps;
  const std::int64_t free_ps = end_of_waits(i);
  clock_ps_ = bounded(clock_ps_, launch_ps);
  if (free_ps >= clock_ps_) {
    pending_ps_ = bounded(pending_ps_, launch_ps);
  } else {
    plan_.issuer[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(plan_.tasks.size());
    emit(i, launch_ps, false);
  }
  issued(i) = {true, follows, segment_,
               bounded(std::max(free_ps, clock_ps_), least_ps(what) - kRoundingPs)};
  if (on_compute) last_on_compute_ = i;
}

// Runs launch kernel by kernel: every instruction keeps its own host task.
HostPlan plan_expanded(const SimulationInput& input, std::int32_t rank_class) {
  const std::vector<Instruction>& list = input.costs.role(rank_class).instructions;
  HostPlan plan;
  plan.issuer.assign(list.size(), HostPlan::kUnbound);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Instruction& what = list[i];
    if (is_idle(what, input.grid) || what.is_run()) continue;
    const bool waits = what.is<HostWait>();
    if (!waits) plan.issuer[i] = static_cast<std::int32_t>(plan.tasks.size());
    plan.tasks.push_back({static_cast<std::int32_t>(i),
                          waits ? sim::Duration{} : sim::duration(input.costs.launch(what)),
                          waits ? input.costs.waits(rank_class, i) : Waits{}});
  }
  return plan;
}

}  // namespace

HostPlan plan_host(const SimulationInput& input, TransferShapes& shapes,
                   std::span<const std::int32_t> rank_classes, bool shares_processor) {
  if (input.expand) return plan_expanded(input, rank_classes.front());
  return HostPlanner(input, shapes, rank_classes, shares_processor).plan();
}

}  // namespace stepcast
