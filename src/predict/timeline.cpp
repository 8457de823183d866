// SPDX-License-Identifier: Apache-2.0
#include "predict/timeline.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/work_limits.h"
#include "predict/attribution.h"
#include "program/pass_pair.h"

namespace stepcast {
namespace {

using sim::Time;

class TimelineReader {
 public:
  TimelineReader(const SimulationInput& input, const Simulation& simulation, std::int32_t c,
                 std::int32_t step)
      : in_(input),
        role_(input.costs.role(c)),
        class_(c),
        replay_(simulation.replay),
        tasks_(simulation.tasks[static_cast<std::size_t>(step)][static_cast<std::size_t>(c)]),
        parts_(simulation.parts) {
    if (step > 0) {
      out_.step_begin = last_compute_end(
          simulation.tasks[static_cast<std::size_t>(step) - 1][static_cast<std::size_t>(c)]);
    }
  }

  ClassTimeline read();

 private:
  const sim::Interval& interval(sim::TaskId task) const { return replay_.tasks[task.index()]; }
  Time last_compute_end(const std::vector<InstructionTasks>& tasks) const;
  void wait_for(std::size_t i, Time until);
  void wait_for_transfer(std::size_t awaited, const sim::Interval& when, Time until);
  void wait_for_part(const PassTasks& pass, const std::vector<PartTasks>& parts, std::size_t k,
                     Time until);
  void pass(const Instruction& what, std::size_t i);
  void run(const Instruction& what, const RunCost& cost, const InstructionTasks& tasks);
  void count(const RunCost& cost, double stretch);
  void append_work(RunCost cost, double stretch);
  void collective(AxisGroup group, const Message& piece, const sim::Interval& when);
  const CollectivePrice& price_of_transfer(const Instruction& what);
  void count_price(const CollectivePrice& price, Seconds time);
  void count_call(AxisGroup group, const Message& piece, Seconds time);
  void spend(Seconds& part, Time until);

  const SimulationInput& in_;
  const Role& role_;
  std::int32_t class_;
  const sim::Replay& replay_;
  const std::vector<InstructionTasks>& tasks_;
  const std::vector<std::vector<PartTasks>>& parts_;
  ClassTimeline out_;
  std::map<std::pair<std::int32_t, bool>, const CollectivePrice*>
      transfers_;  // that were asked for
  Time now_;       // everything before is attributed
  bool span_open_ = false;
  Seconds pending_;  // exposed since the last pass: inside the span if another pass follows
};

Time TimelineReader::last_compute_end(const std::vector<InstructionTasks>& tasks) const {
  Time end;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (role_.instructions[i].stream == Stream::kCompute && tasks[i].device.valid()) {
      end = std::max(end, interval(tasks[i].device).end);
    }
  }
  return end;
}

void TimelineReader::spend(Seconds& part, Time until) {
  if (until <= now_) return;
  part += sim::seconds(until - now_);
  now_ = until;
}

// A wait for another stage is bubble until its message is in flight.
void TimelineReader::wait_for_transfer(std::size_t i, const sim::Interval& when, Time until) {
  const Instruction& awaited = role_.instructions[i];
  if (awaited.transfer() != nullptr) {
    spend(out_.parts.bubble, std::min(when.start, until));
    const Time from = now_;
    spend(out_.parts.exposed_pp, until);
    if (now_ > from) count_price(price_of_transfer(awaited), sim::seconds(now_ - from));
    return;
  }
  wait_for(i, std::min(when.start, until));  // what it waited for itself
  const auto* call = awaited.as<CollectiveCall>();
  if (call == nullptr) {
    spend(out_.parts.exposed_offload, until);
    return;
  }
  const Time before = now_;
  if (!inside_a_stage(call->group)) spend(out_.parts.bubble, std::min(when.start, until));
  const Time from = now_;
  spend(exposed_part(out_.parts, call->group), until);
  if (inside_a_stage(call->group)) pending_ += sim::seconds(now_ - before);
  count_call(call->group, call->piece(), sim::seconds(now_ - from));
}

// Spends a gap before task `k` of a pass on its tasks beside the computing stream that it waited
// for, the earliest to end first.
void TimelineReader::wait_for_part(const PassTasks& pass, const std::vector<PartTasks>& parts,
                                   std::size_t k, Time until) {
  const auto end_of = [&](std::int32_t part) {
    return interval(parts[static_cast<std::size_t>(part)].device).end;
  };
  std::vector<std::int32_t> after = pass.tasks[k].after;
  std::ranges::sort(after, {}, end_of);
  for (const std::int32_t before : after) {
    const auto j = static_cast<std::size_t>(before);
    const PassTask& awaited = pass.tasks[j];
    if (awaited.stream == Stream::kCompute) continue;
    const sim::Interval& when = interval(parts[j].device);
    const Time last = std::min(when.end, until);
    wait_for_part(pass, parts, j, std::min(when.start, last));
    const Time from = now_;
    if (awaited.call != nullptr) {
      const auto& call = std::get<Collective>(awaited.call->work);
      spend(exposed_part(out_.parts, call.group), last);
      count_call(call.group, message_of(call), sim::seconds(now_ - from));
    } else if (awaited.cost.gpu.value() > 0 && last > now_) {
      const RunCost exposed = awaited.cost.exposed(sim::seconds(last - now_));
      count(exposed, 1);
      out_.work.append(exposed);
      now_ = last;
    }
    spend(out_.parts.other, last);
    pending_ += sim::seconds(now_ - from);
  }
}

// Spends a gap before the instruction on the operations that it waited for, the earliest to end
// first.
void TimelineReader::wait_for(std::size_t i, Time until) {
  if (in_.alone) return;  // nobody is waited for: what is left is the host's
  Waits waits = in_.costs.waits(class_, i);
  const auto end_of = [&](std::int32_t wait) {
    if (!tasks_[static_cast<std::size_t>(wait)].device.valid()) return Time{};
    return interval(tasks_[static_cast<std::size_t>(wait)].device).end;
  };
  std::sort(waits.begin(), waits.end(),
            [&](std::int32_t a, std::int32_t b) { return end_of(a) < end_of(b); });
  for (const std::int32_t wait : waits) {
    if (!tasks_[static_cast<std::size_t>(wait)].device.valid()) continue;
    if (role_.instructions[static_cast<std::size_t>(wait)].is_run()) continue;
    const sim::Interval& when = interval(tasks_[static_cast<std::size_t>(wait)].device);
    wait_for_transfer(static_cast<std::size_t>(wait), when, std::min(when.end, until));
  }
}

// Every kernel of the run takes that much longer: on shared cores, or beside traffic that takes a
// part of the GPU. Its FLOPs are the same.
void TimelineReader::append_work(RunCost cost, double stretch) {
  for (Seconds* part : {&cost.gemm, &cost.attention, &cost.memory_bound}) *part *= stretch;
  for (Seconds* part : {&cost.ideal_gemm, &cost.ideal_attention}) *part *= std::min(stretch, 1.0);
  out_.work.append(cost);
}

void TimelineReader::count(const RunCost& cost, double stretch) {
  out_.parts.compute += cost.compute * stretch;
  out_.parts.recompute += cost.recompute * stretch;
  out_.parts.optimizer += cost.optimizer * stretch;
  for (std::size_t kind = 0; kind < kTrafficKinds; ++kind) {
    out_.parts.*exposed_by(static_cast<TrafficKind>(kind)) += cost.by_traffic[kind] * stretch;
  }
}

// Task by task, as the replay ran them.
void TimelineReader::pass(const Instruction& what, std::size_t i) {
  const PassTasks& pass = in_.tasks_of_pass(class_, static_cast<std::int32_t>(i));
  const std::vector<PartTasks>& parts = parts_[static_cast<std::size_t>(tasks_[i].parts)];
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const PassTask& task = pass.tasks[k];
    if (task.stream != Stream::kCompute) continue;
    const auto [host, device] = parts[k];
    const sim::Interval& when = interval(device);
    if (device == tasks_[i].device_begin) wait_for(i, when.start);
    wait_for_part(pass, parts, k, when.start);
    if (task.call != nullptr) {
      const auto& call = std::get<Collective>(task.call->work);
      collective(call.group, message_of(call), when);
    } else {
      spend(out_.parts.other, when.start);
      run(what, task.cost, {host, device, device});
    }
  }
}

void TimelineReader::run(const Instruction& what, const RunCost& cost,
                         const InstructionTasks& tasks) {
  const Time begin = interval(tasks.device_begin).start, end = interval(tasks.device).end;
  const double duration = sim::seconds(end - begin).value();
  const double kernels = cost.gpu.value();
  // The run took longer than its kernels: the host starved it, or traffic beside it slowed it.
  const Time issued = tasks.host.valid() ? interval(tasks.host).start : begin;
  const bool starved =
      !in_.expand && duration > kernels && end == issued + sim::duration(cost.floor);
  const bool waits = starved || kernels == 0;
  const double stretch = waits ? 1.0 : duration / kernels;
  count(cost, stretch);
  if (waits) out_.parts.other += Seconds(duration - kernels);
  append_work(cost, stretch);
  now_ = end;
  if (in_span(what)) {
    if (!span_open_) out_.span_begin = begin;
    if (span_open_) out_.exposed_in_span += pending_;
    pending_ = Seconds(0);
    span_open_ = true;
    out_.span_end = end;
    out_.busy += Seconds(duration);
  }
}

const CollectivePrice& TimelineReader::price_of_transfer(const Instruction& what) {
  const std::int32_t peer = what.transfer()->peer, own = role_.stage;
  const bool arrives = what.is<Receive>();
  const auto [known, added] = transfers_.try_emplace({peer, arrives});
  if (added) {
    const PairTraffic* pairs = in_.traffic.find(arrives ? peer : own, arrives ? own : peer);
    known->second = &pairs->orbits.front().price;
  }
  return *known->second;
}

void TimelineReader::count_price(const CollectivePrice& price, Seconds time) {
  out_.work.by_curve[static_cast<std::size_t>(price.curve)] += time;
  out_.work.by_provenance[static_cast<std::size_t>(price.provenance)] += time;
}

// Time that the rank waited for it: how sure it is depends on where its price comes from. What
// joins all stages is in the rest of the step, with the host's time.
void TimelineReader::count_call(AxisGroup axes, const Message& piece, Seconds time) {
  if (time.value() == 0 || axes.joins_all_stages()) return;
  const GroupTraffic& groups = *in_.traffic.find(axes);
  const RankId rank = in_.symmetry.ranks[static_cast<std::size_t>(class_)].front();
  const auto orbit = static_cast<std::size_t>(in_.traffic.orbit_of(groups, rank));
  const auto message = static_cast<std::size_t>(groups.message(piece));
  count_price(groups.orbits[orbit].prices[message].price, time);
}

void TimelineReader::collective(AxisGroup group, const Message& piece, const sim::Interval& when) {
  const Time before = now_;
  // Before it starts, the rank waits for the other members; across stages the pipeline drains.
  Time from = now_;
  spend(inside_a_stage(group) ? exposed_part(out_.parts, group) : out_.parts.bubble, when.start);
  if (!inside_a_stage(group)) from = now_;
  spend(exposed_part(out_.parts, group), when.end);
  if (inside_a_stage(group)) pending_ += sim::seconds(now_ - before);
  count_call(group, piece, sim::seconds(now_ - from));
}

ClassTimeline TimelineReader::read() {
  now_ = out_.step_begin;
  StopPoint stop;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    stop.pass();
    const Instruction& what = role_.instructions[i];
    if (what.stream != Stream::kCompute || !tasks_[i].device.valid()) continue;
    if (alternates(what) && !leads_pair(what)) continue;  // read with the first of the two
    if (const auto* call = what.as<CollectiveCall>()) {
      const sim::Interval& when = interval(tasks_[i].device);
      if (in_.alone) {
        spend(out_.parts.other, when.end);
      } else {
        wait_for(i, when.start);
        collective(call->group, call->piece(), when);
      }
    } else if (!in_.stamped(class_, static_cast<std::int32_t>(i)).empty()) {
      pass(what, i);
    } else if (what.is_run()) {
      const Time start = interval(tasks_[i].device_begin).start;
      wait_for(i, start);
      spend(out_.parts.other, start);  // the host
      run(what, in_.costs.run(class_, what), tasks_[i]);
    }
  }
  out_.step_end = now_;
  return out_;
}

}  // namespace

ClassTimeline read_timeline(const SimulationInput& input, const Simulation& simulation,
                            std::int32_t rank_class, std::int32_t step) {
  return TimelineReader(input, simulation, rank_class, step).read();
}

}  // namespace stepcast
