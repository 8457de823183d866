// SPDX-License-Identifier: Apache-2.0
#include "predict/workload_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

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
                                 const std::vector<std::vector<std::int32_t>>& partner)
    : in_(input),
      partner_(partner),
      shapes_(input),
      on_cpu_(input.scenario.cluster.spec.accelerator.is_cpu()) {
  add_resources();
  for (std::int32_t c = 0; c < classes(); ++c) {
    plans_.push_back(plan_host(in_, shapes_, c, processor(c).valid() || cores_.valid()));
  }
}

// Traffic of the class runs beside its kernels, and slows them.
bool WorkloadBuilder::shares_processor(std::int32_t c) const {
  if (in_.alone) return false;
  const auto& list = in_.costs.role(c).instructions;
  return std::any_of(list.begin(), list.end(), [&](const Instruction& what) {
    const auto* call = what.as<CollectiveCall>();
    if (!runs_beside_passes(what.stream) || shapes_.is_idle(what)) return false;
    // A process moves all its messages itself; a GPU's copies between stages wait for their host.
    if (on_cpu_) return call != nullptr || what.transfer() != nullptr;
    return call != nullptr &&
           (call->purpose == Purpose::kGradients || call->purpose == Purpose::kParameters);
  });
}

void WorkloadBuilder::add_resources() {
  for (std::int32_t s = 0; s < classes() * kStreams; ++s) workload_.add_stream();
  const double part = in_.contention ? 1.0 : kLinksForAll;
  for (const double capacity : in_.symmetry.link_capacity) {
    links_.push_back(workload_.add_resource(part * capacity));
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
  workload_.reserve(workload_.tasks() + instructions, workload_.tasks() + 2 * instructions,
                    workload_.edges().size() + 2 * instructions);
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

// It starts as it is issued (predict/host_plan.h).
sim::TaskId WorkloadBuilder::add_run_as_issued(std::int32_t c, const RunCost& cost) {
  RunCost issued;
  issued.gpu = std::max(cost.gpu, cost.floor);
  return add_kernel(c, Stream::kCompute, {}, issued);
}

void WorkloadBuilder::add_run(std::int32_t c, std::int32_t i, const Instruction& what) {
  InstructionTasks& own = tasks(c, i);
  if (in_.expand && !alternates(what)) {
    add_expanded_run(c, what, own);
    return;
  }
  const RunCost& cost = in_.costs.run(c, what);
  if (in_.expand) {  // one activity, which ends no earlier than its issue
    const sim::TaskId issue = add_host(c, sim::duration(cost.host));
    own.device_begin = add_kernel(c, what.stream, {}, cost);
    own.device = add_kernel(c, what.stream, issue, {});
    return;
  }
  const HostPlan& plan = plans_[static_cast<std::size_t>(c)];
  const bool as_issued = plan.issuer[static_cast<std::size_t>(i)] == HostPlan::kAsIssued;
  own.device = own.device_begin =
      as_issued ? add_run_as_issued(c, cost) : add_kernel(c, what.stream, own.host, cost);
}

// Every operation its own task behind its own launch: what add_run() contracts.
void WorkloadBuilder::add_expanded_run(std::int32_t c, const Instruction& what,
                                       InstructionTasks& own) {
  const std::vector<RunCosts::PricedBlock> blocks = in_.costs.operations(c, what);
  const auto add = [&](sim::TaskId task) {
    own.device = task;
    if (!own.device_begin.valid()) own.device_begin = task;
  };
  // A pass begins where its computing stream comes to it, and a block where the one before ended.
  if (!std::all_of(blocks.begin(), blocks.end(), on_one_stream)) {
    add(add_kernel(c, what.stream, {}, {}));
    for (const RunCosts::PricedBlock& block : blocks) add(add_block(c, block, own.device));
    return;
  }
  for (const RunCosts::PricedBlock& block : blocks) {
    for (const PricedOperation& priced : block) {
      const sim::TaskId launch = add_host(c, sim::duration(priced.cost.host));
      add(add_kernel(c, what.stream, launch, priced.cost));
    }
  }
  const RunCost meeting = in_.costs.meeting(c, what);
  if (meeting.gpu.value() > 0 || !own.device.valid()) add(add_kernel(c, what.stream, {}, meeting));
}

// A whole pass over a block, on all its streams. Returns what ends when the last of them does.
sim::TaskId WorkloadBuilder::add_block(std::int32_t c, const RunCosts::PricedBlock& block,
                                       sim::TaskId begin) {
  std::vector<sim::TaskId> tasks;  // by operation
  std::array<sim::TaskId, kBlockStreams> last{};
  for (const auto& [operation, cost, lag, held] : block) {
    const sim::TaskId launch = add_host(c, sim::duration(cost.host));
    const sim::TaskId task = add_kernel(c, stream_of(operation->stream), launch, cost);
    sim::TaskId& before = last[static_cast<std::size_t>(operation->stream)];
    if (!before.valid()) workload_.depend(begin, task);
    for (const std::int32_t awaited : operation->after) {
      if (awaited >= 0) workload_.depend(tasks[static_cast<std::size_t>(awaited)], task);
    }
    before = task;
    tasks.push_back(task);
  }
  const sim::TaskId end = add_kernel(c, Stream::kCompute, {}, {});
  for (const sim::TaskId task : last) {
    if (task.valid()) workload_.depend(task, end);
  }
  return end;
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
// n-th of the others; a send meets the receive of the same pair and tag; a copy meets nobody.
// Returns the member.
std::int32_t WorkloadBuilder::add_transfer(std::int32_t c, std::int32_t i,
                                           const Instruction& what) {
  const TransferShape& shape = shapes_.shape(c, what);
  sim::TaskId task;
  std::int32_t member = 0;
  if (in_.alone || what.is<HostCopy>()) {
    task = open_seats(shape);
  } else if (what.is<CollectiveCall>()) {
    auto& sequence = collectives_[static_cast<std::size_t>(shape.meeting)];
    const auto place = static_cast<std::size_t>(met_[static_cast<std::size_t>(shape.meeting)]++);
    if (place == sequence.size()) sequence.push_back({open_seats(shape)});
    task = sequence[place].task;
    member = sequence[place].placed++;
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
  for (const std::int32_t wait : what.waits) {
    if (!tasks(c, wait).device.valid()) continue;
    workload_.depend(tasks(c, wait).device, task, member);
    waits = true;
  }
  // What opens a step on a side stream follows the update of the step before.
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
  const HostPlan& plan = plans_[static_cast<std::size_t>(c)];
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
  for (std::int32_t i = begin; i < static_cast<std::int32_t>(list.size()); ++i) {
    const Instruction& what = list[static_cast<std::size_t>(i)];
    if (shapes_.is_idle(what)) continue;
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
  auto replay = sim::replay(
      workload_,
      [](sim::TaskId task, const void* builder) {
        return static_cast<const WorkloadBuilder*>(builder)->describe(task);
      },
      this, nullptr, in_.stop);
  if (!replay) {
    for (Error& error : replay.error()) error.path = "layout.schedule";
    return failure(replay.error());
  }
  Simulation out;
  out.replay = std::move(*replay);
  out.steps = static_cast<std::int32_t>(steps_.size());
  out.tasks = std::move(steps_);
  out.task_count = out.replay.tasks.size();
  return out;
}

}  // namespace stepcast
