// SPDX-License-Identifier: Apache-2.0
#include "predict/workload_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "core/assert.h"
#include "core/work_limits.h"
#include "layout/scenario.h"
#include "predict/check_replay.h"
#include "predict/step_samples.h"
#include "program/pass_pair.h"

namespace stepcast {

using sim::MemberSpec;
using sim::TaskSpec;
using sim::Use;

namespace {

constexpr double kLinksForAll = 1e9;  // times a link's capacity: nobody waits for it

// Traffic of a block on a stream of its own is part of a pass: the replay of the block, which is
// its price, takes no SMs from the kernels beside it.
bool runs_beside_passes(Stream stream) {
  return stream != Stream::kCompute && stream != Stream::kBlockCommunication &&
         stream != Stream::kBlockCopy;
}

}  // namespace

WorkloadBuilder::WorkloadBuilder(const SimulationInput& input,
                                 const std::vector<std::vector<std::int32_t>>& partner,
                                 SharedWorkload* shared)
    : in_(input),
      partner_(partner),
      shapes_(input),
      shared_(shared),
      workload_(shared != nullptr ? shared->workload : own_),
      first_stream_(static_cast<std::int32_t>(workload_.streams())),
      on_cpu_(input.scenario.cluster.spec.accelerator.is_cpu()) {
  add_resources();
  plan_hosts();
}

// Hosts of classes whose instructions cost the same share a plan.
void WorkloadBuilder::plan_hosts() {
  std::map<std::pair<std::int32_t, bool>, std::vector<std::int32_t>> alike;
  for (std::int32_t c = 0; c < classes(); ++c) {
    alike[{in_.costs.table(c), processor(c).valid() || cores_.valid()}].push_back(c);
  }
  plan_of_.resize(static_cast<std::size_t>(classes()));
  for (const auto& [key, rank_classes] : alike) {
    for (const std::int32_t c : rank_classes) {
      plan_of_[static_cast<std::size_t>(c)] = plans_.size();
    }
    end_if_stopped();
    plans_.push_back(plan_host(in_, shapes_, rank_classes, key.second));
  }
}

// Traffic of the class runs beside its kernels, and slows them.
bool WorkloadBuilder::shares_processor(std::int32_t c) const {
  if (in_.alone) return false;
  const auto& list = in_.costs.role(c).instructions;
  return std::any_of(list.begin(), list.end(), [&](const Instruction& what) {
    const auto* call = what.as<CollectiveCall>();
    if (!runs_beside_passes(what.stream) || is_idle(what, in_.grid)) return false;
    // A process moves all its messages itself; a GPU's copies between stages wait for their host.
    const bool moves = what.transfer() != nullptr || what.host_copy() != nullptr;
    if (on_cpu_) return call != nullptr || moves;
    return call != nullptr &&
           (call->purpose == Purpose::kGradients || call->purpose == Purpose::kParameters);
  });
}

void WorkloadBuilder::add_resources() {
  for (std::int32_t s = 0; s < classes() * kStreams; ++s) workload_.add_stream();
  const double part = in_.contention ? 1.0 : kLinksForAll;
  for (std::size_t l = 0; l < in_.symmetry.link_capacity.size(); ++l) {
    const auto add = [&] { return workload_.add_resource(part * in_.symmetry.link_capacity[l]); };
    if (shared_ == nullptr) {
      links_.push_back(add());
      continue;
    }
    const auto [known, fresh] = shared_->links.try_emplace(in_.symmetry.link[l]);
    if (fresh) known->second = add();
    links_.push_back(known->second);
  }
  processors_.resize(static_cast<std::size_t>(classes()));
  for (std::int32_t c = 0; c < classes(); ++c) {
    if (shares_processor(c) || in_.scenario.layout.overlap.pp) {
      processors_[static_cast<std::size_t>(c)] = workload_.add_resource(1.0);
    }
  }
  const ClusterSpec& spec = in_.scenario.cluster.spec;
  if (on_cpu_ && spec.takes_turns()) {
    cores_ = workload_.add_resource(static_cast<double>(spec.shared_cores));
  }
}

void WorkloadBuilder::reserve_step() {
  std::size_t instructions = 0;
  for (std::int32_t c = 0; c < classes(); ++c) {
    instructions += in_.costs.role(c).instructions.size();
  }
  // Room for a step at a time would copy all steps for each.
  if (workload_.tasks() + instructions <= reserved_) return;
  const std::size_t more = std::max(instructions, workload_.tasks());
  reserved_ = workload_.tasks() + more;
  workload_.reserve(reserved_, workload_.tasks() + 2 * more, workload_.edges().size() + 2 * more);
}

sim::TaskId WorkloadBuilder::add_host(std::int32_t c, sim::Duration latency) {
  const MemberSpec member{stream(c, Stream::kHost), {}, {}, {}};
  TaskSpec spec;
  spec.members = {&member, 1};
  spec.latency = latency;
  return workload_.add_task(spec);
}

void WorkloadBuilder::add_host_task(std::int32_t c, const HostTask& host) {
  const sim::TaskId task = add_host(c, host.latency);
  for (const std::int32_t wait : host.waits) {
    const sim::TaskId awaited = tasks(c, wait).device;
    if (awaited.valid()) workload_.depend(awaited, task);
  }
  host_tasks_.push_back(task);
}

// Kernels of one rank of the class take `part` of its processor, and all ranks of it together of
// the cores that the machine has.
void WorkloadBuilder::use_processor(std::int32_t c, double part) {
  uses_.clear();
  if (!(part > 0)) return;
  if (processor(c).valid()) uses_.push_back({processor(c), part});
  if (!cores_.valid()) return;
  const auto& ranks = in_.symmetry.ranks[static_cast<std::size_t>(c)];
  uses_.push_back({cores_, part * static_cast<double>(ranks.size())});
}

sim::TaskId WorkloadBuilder::add_kernel(std::int32_t c, Stream s, sim::TaskId issuer,
                                        const RunCost& cost) {
  const MemberSpec member{
      stream(c, s), issuer, issuer.valid() ? sim::duration(cost.floor) : sim::Duration{}, {}};
  TaskSpec spec;
  spec.members = {&member, 1};
  const bool takes_time = cost.gpu.value() > 0 && (on_cpu_ || s == Stream::kCompute);
  const double part = on_cpu_ && takes_time ? 1 - cost.core_idle / cost.gpu : 1.0;
  use_processor(c, takes_time ? part : 0);
  if (uses_.empty()) {
    spec.latency = sim::duration(cost.gpu);
  } else {
    spec.work = cost.gpu.value();
    spec.rate_bound = 1.0;
    spec.share = 1 / part;  // processes share a core by their time on it
    spec.uses = uses_;
  }
  return workload_.add_task(spec);
}

// A part of a run takes its share of what the run was drawn to take longer, or less long.
RunCost WorkloadBuilder::as_drawn(std::int32_t c, std::int32_t i, const RunCost& whole,
                                  const RunCost& part) const {
  const auto computed = [](const RunCost& cost) {
    return cost.compute + cost.recompute + cost.optimizer;
  };
  RunCost out = part;
  if (!(computed(whole).value() > 0)) return out;
  const double share = computed(part) / computed(whole);
  const Seconds late(in_.draws->of(steps_.size() - 1, c, i) * share);
  out.gpu = std::max(Seconds(0), part.gpu + late);
  out.floor = std::max(out.host, part.floor + late);
  return out;
}

// It starts as it is issued (predict/host_plan.h).
sim::TaskId WorkloadBuilder::add_run_as_issued(std::int32_t c, const RunCost& cost) {
  RunCost issued;
  issued.gpu = std::max(cost.gpu, cost.floor);
  return add_kernel(c, Stream::kCompute, {}, issued);
}

void WorkloadBuilder::add_run(std::int32_t c, std::int32_t i, const Instruction& what) {
  InstructionTasks& own = tasks(c, i);
  if (alternates(what) && !leads_pair(what)) {  // the pair is all in the first of the two
    own = tasks(c, i - 1);
    own.host = {};
    return;
  }
  const std::int32_t issuer = plan(c).issuer[static_cast<std::size_t>(i)];
  if (in_.expand || !in_.stamped(c, i).empty()) {
    return add_pass(c, i, in_.expand || issuer == HostPlan::kByTask);
  }
  const auto add = [&](const RunCost& cost) {
    return issuer == HostPlan::kAsIssued ? add_run_as_issued(c, cost)
                                         : add_kernel(c, what.stream, own.host, cost);
  };
  const RunCost& cost = in_.costs.run(c, what);
  own.device = own.device_begin =
      in_.draws != nullptr ? add(as_drawn(c, i, cost, cost)) : add(cost);
}

// `has_issue`: each task has its own launch in front of it. Otherwise the host is ahead of all.
void WorkloadBuilder::add_pass(std::int32_t c, std::int32_t i, bool has_issue) {
  const Instruction& instruction = in_.costs.role(c).instructions[static_cast<std::size_t>(i)];
  const auto issue = [&](Seconds host) {
    return has_issue ? add_host(c, sim::duration(host)) : sim::TaskId{};
  };
  const auto add = [&](const PassTask& task, sim::TaskId issuer) {
    if (task.call == nullptr && in_.draws != nullptr) {
      const RunCost drawn = as_drawn(c, i, in_.costs.run(c, instruction), task.cost);
      return Seat{add_kernel(c, task.stream, issuer, drawn)};
    }
    if (task.call == nullptr) return Seat{add_kernel(c, task.stream, issuer, task.cost)};
    const Seat seat = meet(shapes_.shape(c, std::get<Collective>(task.call->work)));
    workload_.place(seat.task, seat.member, {stream(c, task.stream), {}, {}, {}});
    if (issuer.valid()) workload_.depend(issuer, seat.task, seat.member);
    return seat;
  };
  const std::vector<PassTask>& pass = in_.tasks_of_pass(c, i).tasks;
  InstructionTasks& own = tasks(c, i);
  own.parts = static_cast<std::int32_t>(parts_.size());
  parts_.push_back(write_pass(pass, workload_, issue, add));
  for (std::size_t k = 0; k < pass.size(); ++k) {
    if (pass[k].stream != Stream::kCompute) continue;
    own.device = parts_.back()[k].device;
    if (!own.device_begin.valid()) own.device_begin = own.device;
  }
}

// A task with a seat for each member.
sim::TaskId WorkloadBuilder::open_seats(const TransferShape& shape) {
  seats_.assign(static_cast<std::size_t>(shape.members), MemberSpec{});
  uses_.clear();
  for (const ClassLoad& load : shape.loads) {
    uses_.push_back({links_[static_cast<std::size_t>(load.link_class)], load.weight});
  }
  for (const std::int32_t c : shape.on_cores_of) {
    if (processor(c).valid()) uses_.push_back({processor(c), shape.core});
  }
  if (cores_.valid() && shape.cores > 0) uses_.push_back({cores_, shape.cores});
  TaskSpec spec;
  spec.members = seats_;
  spec.latency = shape.latency;
  spec.work = shape.work;
  spec.rate_bound = shape.rate_bound;
  spec.share = shape.share;
  spec.uses = uses_;
  return workload_.add_task(spec);
}

// Members of a communicator issue the same sequence, so the n-th collective of one member meets the
// n-th of the others.
Seat WorkloadBuilder::meet(const TransferShape& shape) {
  if (in_.alone) return {open_seats(shape), 0};
  auto& sequence = collectives_[static_cast<std::size_t>(shape.meeting)];
  const auto place = static_cast<std::size_t>(met_[static_cast<std::size_t>(shape.meeting)]++);
  if (place == sequence.size()) sequence.push_back({open_seats(shape)});
  return {sequence[place].task, sequence[place].placed++};
}

// A send meets the receive of the same pair and tag; a copy meets nobody. Returns the member.
std::int32_t WorkloadBuilder::add_transfer(std::int32_t c, std::int32_t i,
                                           const Instruction& what) {
  const TransferShape& shape = shapes_.shape(c, what);
  sim::TaskId task;
  std::int32_t member = 0;
  if (in_.alone || what.host_copy() != nullptr || what.is<HostUpdate>()) {
    task = open_seats(shape);
  } else if (what.is<CollectiveCall>()) {
    const Seat seat = meet(shape);
    task = seat.task;
    member = seat.member;
  } else {
    const auto stage = static_cast<std::size_t>(in_.costs.role(c).stage);
    task = tasks(shape.peer_class, partner_[stage][static_cast<std::size_t>(i)]).device;
    member = task.valid() ? 1 : 0;
    if (!task.valid()) task = open_seats(shape);
  }
  // Kernels lose a collective's SMs from the posting on; those of a transfer between stages, whose
  // few blocks share SMs with kernels while they wait, only while it moves. A process that waits
  // sleeps, and holds nothing.
  const Use hold{processor(c), shape.held};
  MemberSpec spec{stream(c, what.stream), {}, {}, {}};
  const bool holds = processor(c).valid() && !on_cpu_ && runs_beside_passes(what.stream);
  if (holds) spec.holds = {&hold, 1};
  spec.holds_from_start = !what.is<CollectiveCall>();
  workload_.place(task, member, spec);
  InstructionTasks& own = tasks(c, i);
  own.device = own.device_begin = task;
  if (own.host.valid()) workload_.depend(own.host, task, member);
  return member;
}

void WorkloadBuilder::add_waits(std::int32_t c, std::int32_t i, const Instruction& what,
                                std::int32_t member) {
  const sim::TaskId task = tasks(c, i).device_begin;
  bool waits = false;
  for (const std::int32_t wait : in_.costs.waits(c, static_cast<std::size_t>(i))) {
    if (!tasks(c, wait).device.valid()) continue;
    workload_.depend(tasks(c, wait).device, task, member);
    waits = true;
  }
  // A gather that opens a step on a side stream follows the update of the step before.
  if (waits || !what.is<CollectiveCall>() || what.stream != Stream::kGather) return;
  const sim::TaskId before = end_of_step_before(c);
  if (before.valid()) workload_.depend(before, task, member);
}

sim::TaskId WorkloadBuilder::end_of_step_before(std::int32_t c) const {
  if (steps_.size() < 2) return {};
  const auto& list = in_.costs.role(c).instructions;
  const auto& before = steps_[steps_.size() - 2][static_cast<std::size_t>(c)];
  for (std::size_t i = before.size(); i-- > 0;) {
    if (list[i].stream == Stream::kCompute && before[i].device.valid()) return before[i].device;
  }
  return {};
}

void WorkloadBuilder::add_class(std::int32_t c, std::int32_t begin) {
  const std::vector<Instruction>& list = in_.costs.role(c).instructions;
  const HostPlan& plan = this->plan(c);
  std::size_t next = 0;
  host_tasks_.clear();
  while (next < plan.tasks.size() && plan.tasks[next].before < begin) {
    host_tasks_.emplace_back();
    ++next;
  }
  const auto issue_up_to = [&](std::int32_t i) {
    for (; next < plan.tasks.size() && plan.tasks[next].before <= i; ++next) {
      add_host_task(c, plan.tasks[next]);
    }
  };
  StopPoint stop;
  for (std::int32_t i = begin; i < static_cast<std::int32_t>(list.size()); ++i) {
    stop.pass();
    const Instruction& what = list[static_cast<std::size_t>(i)];
    if (is_idle(what, in_.grid)) continue;
    issue_up_to(i);
    const std::int32_t issuer = plan.issuer[static_cast<std::size_t>(i)];
    if (issuer >= 0) tasks(c, i).host = host_tasks_[static_cast<std::size_t>(issuer)];
    if (what.is<HostWait>()) continue;
    std::int32_t member = 0;
    if (what.is_run()) {
      add_run(c, i, what);
    } else {
      member = add_transfer(c, i, what);
    }
    add_waits(c, i, what, member);
  }
  issue_up_to(static_cast<std::int32_t>(list.size()));
}

void WorkloadBuilder::add_step(const std::vector<std::int32_t>& begin) {
  reserve_step();
  StepTasks& step = steps_.emplace_back();
  for (std::int32_t c = 0; c < classes(); ++c) {
    step.emplace_back(in_.costs.role(c).instructions.size());
  }
  collectives_.assign(static_cast<std::size_t>(shapes_.meetings()), {});
  for (std::int32_t c = 0; c < classes(); ++c) {
    end_if_stopped();
    met_.assign(static_cast<std::size_t>(shapes_.meetings()), 0);
    const std::int32_t first = begin[static_cast<std::size_t>(c)];
    // Data loading, logging and the loss scale: host work between steps.
    if (first == 0 && in_.host.step_s > 0) {
      add_host(c, sim::duration(Seconds(in_.host.step_s)));
    }
    add_class(c, first);
  }
}

// Words for the first instruction that the task belongs to.
std::string WorkloadBuilder::describe(sim::TaskId task) const {
  std::string out;
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    for (std::int32_t c = 0; c < classes(); ++c) {
      const auto& own = steps_[s][static_cast<std::size_t>(c)];
      for (std::size_t i = 0; i < own.size(); ++i) {
        if (own[i].device != task && own[i].host != task) continue;
        const Role& role = in_.costs.role(c);
        out += fmt::format("{}stage {} {}{}", out.empty() ? "" : " with ", role.stage,
                           own[i].host == task ? "issue of " : "", role.instructions[i].name);
        const Slot* slot = role.instructions[i].slot();
        if (slot != nullptr) out += fmt::format(" of micro-batch {}", slot->micro_batch);
      }
    }
  }
  return out.empty() ? "a kernel or its launch" : out;
}

Result<Simulation> WorkloadBuilder::replay() {
  if (in_.check) {
    const std::optional<std::string> lost = lost_wait(in_, workload_, steps_);
    STEPCAST_ASSERT(!lost, lost->c_str());
  }
  auto replay = sim::replay(
      workload_,
      [](sim::TaskId task, const void* builder) {
        return static_cast<const WorkloadBuilder*>(builder)->describe(task);
      },
      this);
  if (!replay) {
    for (Error& error : replay.error()) error.path = "layout.schedule";
    return failure(replay.error());
  }
  return take(std::move(*replay));
}

Simulation WorkloadBuilder::take(sim::Replay replay) {
  Simulation out;
  out.replay = std::move(replay);
  out.steps = static_cast<std::int32_t>(steps_.size());
  out.tasks = std::move(steps_);
  out.parts = std::move(parts_);
  out.task_count = out.replay.tasks.size();
  return out;
}

}  // namespace stepcast
