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

// Returns times by task of the pass; nothing if it is longer than the clock runs.
template <class Issue, class Add>
std::vector<sim::Interval> replay(std::span<const PassTask> pass, RankAlone& rank, Issue&& issue,
                                  Add&& add) {
  rank.workload().reserve(2 * pass.size(), 2 * pass.size(), 3 * pass.size());
  const std::vector<PartTasks> parts = write_pass(pass, rank.workload(), issue, add);
  std::vector<sim::Interval> out;
  if (const auto replayed = sim::replay(rank.workload())) {
    for (const PartTasks& part : parts) out.push_back(replayed->tasks[part.device.index()]);
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

  std::vector<sim::Interval> run(std::span<const PassTask> pass) {
    const auto host_is_ahead = [](Seconds) { return sim::TaskId{}; };
    const auto add = [&](const PassTask& task, sim::TaskId) { return this->add(task); };
    return replay(pass, rank_, host_is_ahead, add);
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

// Attributes the computing stream's time: what it runs, and what it waits for.
class Accounts {
 public:
  Accounts(std::span<const PassTask> pass, const std::vector<sim::Interval>& when)
      : pass_(pass), when_(when) {
    for (std::size_t k = 0; k < pass.size(); ++k) {
      const RunCost& cost = pass[k].cost;
      if (pass[k].stream != Stream::kCompute) {
        sum_.host += cost.host;
        sum_.flops += cost.flops;
        continue;
      }
      wait_until(when[k].start);
      sum_.count(cost);
      sum_.gpu += cost.gpu;
      busy_until_ = when[k].end;
    }
  }
  const RunCost& sum() const { return sum_; }

 private:
  void wait_until(sim::Time time) {
    if (time <= busy_until_) return;
    const auto awaited = std::ranges::find_if(
        when_, [&](const sim::Interval& own) { return own.end == time && own.start < time; });
    RunCost waiting = pass_[static_cast<std::size_t>(awaited - when_.begin())].cost.exposed(
        sim::seconds(time - busy_until_));
    waiting.host = {};  // counted when it was issued
    waiting.flops = {};
    sum_.count(waiting);
    sum_.gpu += waiting.gpu;
  }

  std::span<const PassTask> pass_;
  const std::vector<sim::Interval>& when_;
  RunCost sum_;
  sim::Time busy_until_;
};

}  // namespace

void settle(std::span<PricedOperation> operations) {
  if (std::ranges::any_of(operations, shares)) {
    const std::vector<PassTask> pass = each_operation_of(operations);
    const std::vector<sim::Interval> when = SharedReplay(operations).run(pass);
    for (std::size_t k = 0; k < when.size(); ++k) {
      if (pass[k].begin == pass[k].end) continue;
      PricedOperation& own = operations[static_cast<std::size_t>(pass[k].begin)];
      const sim::Duration time = when[k].end - when[k].start;
      // The clock rounds an end to its next picosecond.
      const bool is_slowed = time > sim::duration(own.cost.gpu + own.lag) + sim::Duration{1};
      if (is_slowed && (has_siblings(own) || !runs_beside(own))) {
        own.cost = own.cost.exposed(sim::seconds(time) - own.lag);
      }
      own.siblings = {};
    }
  }
  for (PricedOperation& own : operations) {
    if (own.lag.value() == 0) continue;
    own.cost.wait(std::get<Collective>(own.operation->work).group, own.lag);
  }
}

RunCost replay_block(std::span<const PricedOperation> operations) {
  if (!on_one_stream(operations)) {
    const std::vector<PassTask> pass = each_operation_of(operations);
    const std::vector<sim::Interval> free = replay_alone(pass), issued = replay_alone(pass, true);
    if (!free.empty() && !issued.empty()) {
      RunCost out = Accounts(pass, free).sum();
      out.floor = sim::seconds(issued.back().end);
      return out;
    }
  }
  RunCost sum;
  for (const PricedOperation& priced : operations) sum.append(priced.cost);
  return sum;
}

std::vector<sim::Interval> replay_alone(std::span<const PassTask> pass, bool host_issues) {
  RankAlone rank;
  const auto issue = [&](Seconds host) {
    return host_issues ? rank.add(Stream::kHost, host) : sim::TaskId{};
  };
  const auto add = [&](const PassTask& task, sim::TaskId issuer) {
    return Seat{rank.add(task.stream, task.cost.gpu, issuer, task.cost.floor)};
  };
  return replay(pass, rank, issue, add);
}

PassBounds bounds_of(std::span<const PassTask> pass) {
  const std::vector<sim::Interval> when = replay_alone(pass);
  PassBounds out;
  Seconds issued;
  for (std::size_t k = 0; k < when.size(); ++k) {
    const PassTask& task = pass[k];
    const Seconds launch = task.call != nullptr ? task.host : task.cost.floor - task.cost.gpu;
    const bool runs = task.begin < task.end && task.cost.floor.value() > 0;
    if (task.call != nullptr || runs) {
      out.lead = std::max(out.lead, issued + launch - sim::seconds(when[k].start));
    }
    issued += task.host;
    out.least = std::max(out.least, sim::seconds(when[k].end));
  }
  return out;
}

}  // namespace stepcast
