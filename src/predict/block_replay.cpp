// SPDX-License-Identifier: Apache-2.0
#include "predict/block_replay.h"

#include <algorithm>

#include "sim/engine.h"

namespace stepcast {
namespace {

// One rank on the engine, without the others.
class RankAlone {
 public:
  RankAlone() {
    for (int s = 0; s < kStreams; ++s) work_.add_stream();
  }

  sim::Workload& workload() { return work_; }
  sim::StreamId stream(Stream which) const {
    return sim::StreamId(static_cast<std::int32_t>(which));
  }
  sim::TaskId add(Stream which, Seconds time, sim::TaskId issuer = {}, Seconds floor = {}) {
    const sim::MemberSpec member{
        stream(which), issuer, issuer.valid() ? sim::duration(floor) : sim::Duration{}, {}};
    return work_.add_task({.members = {&member, 1}, .latency = sim::duration(time)});
  }

 private:
  sim::Workload work_;
};

sim::TaskId host_is_ahead(Seconds) { return {}; }

// When each operation runs in the replay of a pass with a task for each.
using Intervals = std::vector<sim::Interval>;
Intervals intervals_of(std::span<const PassTask> pass, const std::vector<PartTasks>& parts,
                       const sim::Replay& replay, std::size_t operations) {
  Intervals out(operations);
  for (std::size_t k = 0; k < pass.size(); ++k) {
    if (pass[k].begin == pass[k].end) continue;
    out[static_cast<std::size_t>(pass[k].begin)] = replay.tasks[parts[k].device.index()];
  }
  return out;
}

// Kernels lose a part of the processor to it.
bool holds(const PricedOperation& one) { return one.held > 0 && runs_beside(one); }
bool has_siblings(const PricedOperation& one) { return one.siblings.links != nullptr; }
bool shares(const PricedOperation& one) { return holds(one) || has_siblings(one); }

// The pass with what its operations share. Siblings of a group send what it sends, from the moment
// at which it begins.
class SharedReplay {
 public:
  explicit SharedReplay(std::span<const PricedOperation> operations) : operations_(operations) {
    processor_ = rank_.workload().add_resource(1);
    shares_processor_ = std::ranges::any_of(operations, holds);
    const auto first = std::ranges::find_if(operations, has_siblings);
    if (first == operations.end()) return;
    for (const double capacity : first->siblings.links->capacities) {
      links_.push_back(rank_.workload().add_resource(capacity));
    }
  }

  Result<Intervals> run() {
    const std::vector<PassTask> pass = tasks_of(operations_);
    const auto add = [&](const PassTask& task, sim::TaskId) { return this->add(task); };
    const auto parts = write_pass(pass, rank_.workload(), host_is_ahead, add);
    const auto replay = sim::replay(rank_.workload());
    if (!replay) return failure(replay.error());
    return intervals_of(pass, parts, *replay, operations_.size());
  }

 private:
  Seat add(const PassTask& task) {
    if (task.begin == task.end) return {rank_.add(task.stream, Seconds(0))};
    const PricedOperation& own = operations_[static_cast<std::size_t>(task.begin)];
    const sim::Use held{processor_, own.held}, whole{processor_, 1};
    sim::MemberSpec member{rank_.stream(task.stream), {}, {}, {}};
    if (holds(own)) member.holds = {&held, 1};
    sim::TaskSpec spec{.members = {&member, 1}, .latency = {}};
    if (has_siblings(own)) return {add_siblings(own, spec)};
    if (shares_processor_ && !runs_beside(own) && own.cost.gpu.value() > 0) {
      spec.work = own.cost.gpu.value();
      spec.rate_bound = 1;
      spec.uses = {&whole, 1};
    } else {
      spec.latency = sim::duration(own.cost.gpu + own.lag);
    }
    return {rank_.workload().add_task(spec)};
  }

  // `spec`: of its own group.
  sim::TaskId add_siblings(const PricedOperation& own, sim::TaskSpec& spec) {
    spec.latency = sim::duration(own.lag + own.siblings.latency);
    spec.work = own.siblings.work.value();
    spec.rate_bound = own.siblings.rate_bound.value();
    spec.share = own.siblings.share;
    sim::TaskId first;
    for (const SiblingUses& of_group : *own.siblings.uses) {
      std::vector<sim::Use> uses;
      for (const auto& [link, weight] : of_group) {
        uses.push_back({links_[static_cast<std::size_t>(link)], weight});
      }
      spec.uses = uses;
      sim::MemberSpec in_step;
      if (first.valid()) {
        in_step = {rank_.workload().add_stream(), first, {}, {}};
        spec.members = {&in_step, 1};
      }
      const sim::TaskId task = rank_.workload().add_task(spec);
      if (!first.valid()) first = task;
    }
    return first;
  }

  std::span<const PricedOperation> operations_;
  RankAlone rank_;
  sim::ResourceId processor_;
  std::vector<sim::ResourceId> links_;  // by SiblingUse::link
  bool shares_processor_ = false;
};

// The pass once each operation takes its time.
Result<sim::Replay> replay_settled(std::span<const PassTask> pass, bool host_is_ahead_of_it,
                                   std::vector<PartTasks>& parts) {
  RankAlone rank;
  const auto issue = [&](Seconds host) {
    return host_is_ahead_of_it ? sim::TaskId{} : rank.add(Stream::kHost, host);
  };
  const auto add = [&](const PassTask& task, sim::TaskId issuer) {
    return Seat{rank.add(task.stream, task.cost.gpu, issuer, task.cost.floor)};
  };
  parts = write_pass(pass, rank.workload(), issue, add);
  return sim::replay(rank.workload());
}

// Attributes the computing stream's time: what it runs, and what it waits for.
class Accounts {
 public:
  Accounts(std::span<const PricedOperation> operations, const Intervals& spans)
      : operations_(operations), spans_(spans) {
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const RunCost& cost = operations[i].cost;
      if (runs_beside(operations[i])) {
        sum_.host += cost.host;
        sum_.flops += cost.flops;
        last_ = std::max(last_, spans[i].end);
        continue;
      }
      wait_until(spans[i].start);
      sum_.count(cost);
      sum_.gpu += cost.gpu;
      busy_until_ = spans[i].end;
    }
    wait_until(last_);  // the pass ends when its last stream does
  }
  const RunCost& sum() const { return sum_; }

 private:
  void wait_until(sim::Time time) {
    if (time <= busy_until_) return;
    const auto awaited = std::ranges::find_if(
        spans_, [&](const sim::Interval& span) { return span.end == time && span.start < time; });
    const auto i = static_cast<std::size_t>(awaited - spans_.begin());
    RunCost waiting = operations_[i].cost.exposed(sim::seconds(time - busy_until_));
    waiting.host = {};  // counted when it was issued
    waiting.flops = {};
    sum_.count(waiting);
    sum_.gpu += waiting.gpu;
    busy_until_ = time;
  }

  std::span<const PricedOperation> operations_;
  const Intervals& spans_;
  RunCost sum_;
  sim::Time busy_until_, last_;
};

}  // namespace

void settle(std::span<PricedOperation> operations) {
  if (std::ranges::any_of(operations, shares)) {
    const auto spans = SharedReplay(operations).run();
    for (std::size_t i = 0; spans && i < operations.size(); ++i) {
      PricedOperation& own = operations[i];
      const sim::Duration time = (*spans)[i].end - (*spans)[i].start;
      // The clock rounds an end to its next picosecond.
      const bool is_slowed = time > sim::duration(own.cost.gpu + own.lag) + sim::Duration{1};
      if (is_slowed && (has_siblings(own) || !runs_beside(own))) {
        own.cost = own.cost.exposed(sim::seconds(time) - own.lag);
      }
      own.siblings = {};
    }
  }
  for (PricedOperation& own : operations) {
    if (own.lag.value() > 0)
      own.cost.wait(std::get<Collective>(own.operation->work).group, own.lag);
  }
}

RunCost replay_block(std::span<const PricedOperation> operations) {
  RunCost out;
  if (!on_one_stream(operations)) {
    const std::vector<PassTask> pass = tasks_of(operations);
    std::vector<PartTasks> parts;
    const auto free = replay_settled(pass, true, parts);
    if (free) out = Accounts(operations, intervals_of(pass, parts, *free, operations.size())).sum();
    const auto issued = replay_settled(pass, false, parts);
    if (free && issued) {
      out.floor = sim::seconds(issued->end);
      return out;
    }
    out = {};  // longer than the clock runs, which the replay of the step then says by name
  }
  for (const PricedOperation& priced : operations) out.append(priced.cost);
  return out;
}

std::vector<OperationSpan> replay_spans(std::span<const PricedOperation> operations) {
  std::vector<OperationSpan> out;
  if (!on_one_stream(operations)) {
    const std::vector<PassTask> pass = tasks_of(operations);
    std::vector<PartTasks> parts;
    if (const auto replay = replay_settled(pass, true, parts)) {
      for (const auto& when : intervals_of(pass, parts, *replay, operations.size())) {
        out.push_back({sim::seconds(when.start), sim::seconds(when.end)});
      }
      return out;
    }
  }
  Seconds at;
  for (const PricedOperation& priced : operations) {
    out.push_back({at, at + priced.cost.gpu});
    at += priced.cost.gpu;
  }
  return out;
}

PassBounds bounds_of(std::span<const PassTask> pass) {
  RankAlone rank;
  const auto add = [&](const PassTask& task, sim::TaskId) {
    return Seat{rank.add(task.stream, task.call != nullptr ? Seconds(0) : task.cost.gpu)};
  };
  const std::vector<PartTasks> parts = write_pass(pass, rank.workload(), host_is_ahead, add);
  const auto replay = sim::replay(rank.workload());
  if (!replay) return {};
  PassBounds out{{}, sim::seconds(replay->end)};
  Seconds issued;
  for (std::size_t k = 0; k < pass.size(); ++k) {
    const PassTask& task = pass[k];
    const Seconds launch = task.call != nullptr ? task.host : task.cost.floor - task.cost.gpu;
    const Seconds start = sim::seconds(replay->tasks[parts[k].device.index()].start);
    const bool runs = task.begin < task.end && task.cost.floor.value() > 0;
    if (task.call != nullptr || runs) out.lead = std::max(out.lead, issued + launch - start);
    issued += task.host;
  }
  return out;
}

}  // namespace stepcast
