// SPDX-License-Identifier: Apache-2.0
#include "predict/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace stepcast {
namespace {

using sim::MemberSpec;
using sim::TaskSpec;
using sim::Use;

// A task of one step before the engine knows it: one member per (rank class, instruction).
struct Draft {
  bool host = false;
  std::vector<std::pair<std::int32_t, std::int32_t>> members;  // class, instruction
};

constexpr std::int32_t kNoDraft = -1;

// The host's part of one copy issued from C++: 4 to 6 us an operator (docs/cost-models.md, "Host").
constexpr Seconds kCopyLaunch{5e-6};

class SimulationBuilder {
 public:
  explicit SimulationBuilder(const SimulationInput& input) : in_(input) {}
  Result<Simulation> run(std::int32_t steps);

 private:
  std::size_t classes() const { return in_.symmetry.ranks.size(); }
  const Instruction& instruction(std::int32_t c, std::int32_t i) const {
    return in_.costs.role(c).instructions[static_cast<std::size_t>(i)];
  }
  sim::StreamId stream(std::int32_t c, Stream s) const {
    return sim::StreamId(c * kStreams + static_cast<std::int32_t>(s));
  }
  bool idle(const Instruction& instruction) const;
  void draft_step();
  std::int32_t shared_draft(std::int32_t c, const Instruction& instruction, std::int32_t sequence);
  Result<std::vector<std::int32_t>> stream_order() const;
  void add_resources();
  void add_step(Simulation& out, const std::vector<std::int32_t>& order, std::int32_t step);
  sim::TaskId add_draft(const Draft& draft, std::vector<std::vector<InstructionTasks>>& tasks);
  sim::TaskId add_host(std::int32_t c, const Instruction& instruction);
  void add_run(std::int32_t c, const Instruction& instruction, InstructionTasks& tasks);
  void add_expanded_run(std::int32_t c, const Instruction& instruction, InstructionTasks& tasks);
  sim::TaskId add_transfer(const Draft& draft);
  void add_waits(Simulation& out, std::int32_t step);
  std::string describe(const Draft& draft) const;

  const SimulationInput& in_;
  sim::Workload workload_;
  std::vector<Draft> drafts_;
  std::vector<std::vector<std::int32_t>> device_draft_, host_draft_;  // by class, instruction
  std::map<std::tuple<int, std::int32_t, std::int64_t, std::int64_t>, std::int32_t> shared_;
  std::vector<sim::ResourceId> links_;
  std::vector<sim::ResourceId> processors_;  // by class; invalid where nothing overlaps compute
};

bool SimulationBuilder::idle(const Instruction& instruction) const {
  return instruction.kind == InstructionKind::kCollective &&
         (in_.grid.group_size(instruction.group) < 2 || instruction.bytes == 0);
}

// Members of a communicator issue the same sequence, so the n-th collective of one member meets the
// n-th of the others; a send meets the receive of the same pair and tag.
std::int32_t SimulationBuilder::shared_draft(std::int32_t c, const Instruction& instruction,
                                             std::int32_t sequence) {
  const RankId rank = in_.symmetry.ranks[static_cast<std::size_t>(c)].front();
  std::tuple<int, std::int32_t, std::int64_t, std::int64_t> key;
  if (instruction.kind == InstructionKind::kCollective) {
    const GroupTraffic* groups = in_.traffic.find(instruction.group);
    const auto k = static_cast<std::size_t>(groups - in_.traffic.groups.data());
    const std::int32_t group = in_.grid.group_of(instruction.group, rank);
    const std::int32_t group_class =
        in_.symmetry.groups[k].class_of[static_cast<std::size_t>(group)];
    key = {static_cast<int>(instruction.group), group_class, sequence, 0};
  } else {
    GridPoint other = in_.grid.point(rank);
    other.pp = instruction.peer;
    const std::int32_t peer =
        in_.symmetry.class_of_rank[in_.grid.rank(other).index()];
    const bool sends = instruction.kind == InstructionKind::kSend;
    key = {1000, sends ? c : peer, sends ? peer : c, instruction.tag};
  }
  const auto [found, fresh] = shared_.try_emplace(key, static_cast<std::int32_t>(drafts_.size()));
  if (fresh) drafts_.emplace_back();
  return found->second;
}

void SimulationBuilder::draft_step() {
  device_draft_.resize(classes());
  host_draft_.resize(classes());
  for (std::int32_t c = 0; c < static_cast<std::int32_t>(classes()); ++c) {
    const auto& list = in_.costs.role(c).instructions;
    auto& device = device_draft_[static_cast<std::size_t>(c)];
    auto& host = host_draft_[static_cast<std::size_t>(c)];
    device.assign(list.size(), kNoDraft);
    host.assign(list.size(), kNoDraft);
    std::array<std::int32_t, kGroupKinds> sequence{};
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(list.size()); ++i) {
      const Instruction& what = list[static_cast<std::size_t>(i)];
      if (idle(what)) continue;
      host[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(drafts_.size());
      drafts_.push_back({true, {{c, i}}});
      if (what.kind == InstructionKind::kHostSync) continue;
      std::int32_t draft = static_cast<std::int32_t>(drafts_.size());
      if (what.kind == InstructionKind::kRun) {
        drafts_.emplace_back();
      } else {
        draft = shared_draft(c, what, sequence[static_cast<std::size_t>(what.group)]);
        if (what.kind == InstructionKind::kCollective) {
          ++sequence[static_cast<std::size_t>(what.group)];
        }
      }
      drafts_[static_cast<std::size_t>(draft)].members.emplace_back(c, i);
      device[static_cast<std::size_t>(i)] = draft;
    }
  }
}

std::string SimulationBuilder::describe(const Draft& draft) const {
  std::string out;
  for (const auto& [c, i] : draft.members) {
    const Instruction& what = instruction(c, i);
    out += fmt::format("{}stage {} {} (micro-batch {})", out.empty() ? "" : " with ",
                       in_.costs.role(c).stage, what.name, what.micro_batch);
  }
  return out;
}

// An order of drafts that respects every stream: the engine takes places in order of adding.
Result<std::vector<std::int32_t>> SimulationBuilder::stream_order() const {
  std::vector<std::vector<std::int32_t>> after(drafts_.size());
  std::vector<std::int32_t> open(drafts_.size(), 0);
  for (std::int32_t c = 0; c < static_cast<std::int32_t>(classes()); ++c) {
    std::array<std::int32_t, kStreams> last;
    last.fill(kNoDraft);
    const auto& device = device_draft_[static_cast<std::size_t>(c)];
    for (std::size_t i = 0; i < device.size(); ++i) {
      const std::int32_t issue = host_draft_[static_cast<std::size_t>(c)][i];
      if (issue != kNoDraft && device[i] != kNoDraft) {  // an issuer is added before its task
        after[static_cast<std::size_t>(issue)].push_back(device[i]);
        ++open[static_cast<std::size_t>(device[i])];
      }
      for (const auto& [draft, where] :
           {std::pair{issue, Stream::kHost},
            std::pair{device[i], instruction(c, static_cast<std::int32_t>(i)).stream}}) {
        if (draft == kNoDraft) continue;
        std::int32_t& before = last[static_cast<std::size_t>(where)];
        if (before != kNoDraft) {
          after[static_cast<std::size_t>(before)].push_back(draft);
          ++open[static_cast<std::size_t>(draft)];
        }
        before = draft;
      }
    }
  }
  std::vector<std::int32_t> order;
  order.reserve(drafts_.size());
  for (std::size_t d = 0; d < drafts_.size(); ++d) {
    if (open[d] == 0) order.push_back(static_cast<std::int32_t>(d));
  }
  for (std::size_t next = 0; next < order.size(); ++next) {
    for (const std::int32_t d : after[static_cast<std::size_t>(order[next])]) {
      if (--open[static_cast<std::size_t>(d)] == 0) order.push_back(d);
    }
  }
  if (order.size() == drafts_.size()) return order;
  for (std::size_t d = 0; d < drafts_.size(); ++d) {
    if (open[d] > 0) {
      return failure({ErrorCode::kIllegal,
                      "the schedule deadlocks: members of a communicator issue " +
                          describe(drafts_[d]) + " in different orders",
                      "", "layout.schedule", ""});
    }
  }
  return order;
}

void SimulationBuilder::add_resources() {
  for (std::size_t s = 0; s < classes() * kStreams; ++s) workload_.add_stream();
  for (const double capacity : in_.symmetry.link_capacity) {
    links_.push_back(workload_.add_resource(capacity));
  }
  processors_.resize(classes());
  for (std::int32_t c = 0; c < static_cast<std::int32_t>(classes()); ++c) {
    const auto& list = in_.costs.role(c).instructions;
    const bool overlaps = std::any_of(list.begin(), list.end(), [&](const Instruction& what) {
      return what.kind == InstructionKind::kCollective && what.stream != Stream::kCompute &&
             !idle(what) && what.group == GroupKind::kData;
    });
    if (overlaps || in_.scenario.layout.overlap.pp) {
      processors_[static_cast<std::size_t>(c)] = workload_.add_resource(1.0);
    }
  }
}

sim::TaskId SimulationBuilder::add_host(std::int32_t c, const Instruction& what) {
  Seconds time(0);
  if (what.kind == InstructionKind::kRun) {
    time = in_.costs.run(c, what).host;
  } else if (what.kind != InstructionKind::kHostSync) {
    time = (in_.costs.launch_collective() + kCopyLaunch * static_cast<double>(what.copies)) *
           static_cast<double>(what.pieces);
  }
  const MemberSpec member{stream(c, Stream::kHost), {}, {}, {}};
  TaskSpec spec;
  spec.members = {&member, 1};
  spec.latency = sim::duration(time);
  return workload_.add_task(spec);
}

void SimulationBuilder::add_run(std::int32_t c, const Instruction& what, InstructionTasks& tasks) {
  if (in_.expand) {
    add_expanded_run(c, what, tasks);
    return;
  }
  const RunCost& cost = in_.costs.run(c, what);
  const MemberSpec member{stream(c, Stream::kCompute), tasks.host, sim::duration(cost.floor), {}};
  TaskSpec spec;
  spec.members = {&member, 1};
  const sim::ResourceId processor = processors_[static_cast<std::size_t>(c)];
  const Use use{processor, 1.0};
  if (processor.valid() && cost.gpu.value() > 0) {
    spec.work = cost.gpu.value();
    spec.rate_bound = 1.0;
    spec.uses = {&use, 1};
  } else {
    spec.latency = sim::duration(cost.gpu);
  }
  tasks.device = tasks.device_begin = workload_.add_task(spec);
}

// Every kernel its own task behind its own launch: what add_run() contracts.
void SimulationBuilder::add_expanded_run(std::int32_t c, const Instruction& what,
                                         InstructionTasks& tasks) {
  const sim::ResourceId processor = processors_[static_cast<std::size_t>(c)];
  const Use use{processor, 1.0};
  for (const PricedOperation& priced : in_.costs.operations(c, what)) {
    const MemberSpec host{stream(c, Stream::kHost), {}, {}, {}};
    TaskSpec launch;
    launch.members = {&host, 1};
    launch.latency = sim::duration(priced.cost.host);
    const sim::TaskId launched = workload_.add_task(launch);
    const MemberSpec member{stream(c, Stream::kCompute), launched,
                            sim::duration(priced.cost.floor), {}};
    TaskSpec kernel;
    kernel.members = {&member, 1};
    if (processor.valid() && priced.cost.gpu.value() > 0) {
      kernel.work = priced.cost.gpu.value();
      kernel.rate_bound = 1.0;
      kernel.uses = {&use, 1};
    } else {
      kernel.latency = sim::duration(priced.cost.gpu);
    }
    tasks.device = workload_.add_task(kernel);
    if (!tasks.device_begin.valid()) tasks.device_begin = tasks.device;
  }
}

sim::TaskId SimulationBuilder::add_transfer(const Draft& draft) {
  const auto& [first_class, first_index] = draft.members.front();
  const Instruction& what = instruction(first_class, first_index);
  const CollectivePrice* price = nullptr;
  const std::vector<ClassLoad>* loads = nullptr;
  if (what.kind == InstructionKind::kCollective) {
    const GroupTraffic& groups = *in_.traffic.find(what.group);
    const auto k = static_cast<std::size_t>(&groups - in_.traffic.groups.data());
    const RankId rank = in_.symmetry.ranks[static_cast<std::size_t>(first_class)].front();
    const auto group = static_cast<std::size_t>(in_.grid.group_of(what.group, rank));
    const auto group_class = static_cast<std::size_t>(in_.symmetry.groups[k].class_of[group]);
    const std::int32_t message =
        groups.message({what.collective, what.bytes / what.pieces, what.type});
    const Priced& priced = groups.prices[group][static_cast<std::size_t>(message)];
    price = &priced.price;
    if (priced.loads >= 0 && groups.kind != GroupKind::kTensor) {
      loads = &in_.symmetry.groups[k].loads[group_class][static_cast<std::size_t>(priced.loads)];
    }
  } else {
    const bool sends = what.kind == InstructionKind::kSend;
    const std::int32_t stage = in_.costs.role(first_class).stage;
    const PairTraffic& pairs =
        *in_.traffic.find(sends ? stage : what.peer, sends ? what.peer : stage);
    const auto k = static_cast<std::size_t>(&pairs - in_.traffic.pairs.data());
    const RankId rank = in_.symmetry.ranks[static_cast<std::size_t>(first_class)].front();
    const auto& side = sends ? pairs.senders : pairs.receivers;
    const auto p = static_cast<std::size_t>(std::find(side.begin(), side.end(), rank) - side.begin());
    price = &pairs.prices[p];
    loads = &in_.symmetry.pairs[k]
                 .loads[static_cast<std::size_t>(in_.symmetry.pairs[k].class_of[p])];
  }

  // Its SMs are lost to kernels from the posting on. A transfer between stages keeps two busy
  // (NVIDIA/nccl issue 689: 2 SMs for a NIC), whatever it could use.
  const std::int64_t blocks = what.kind == InstructionKind::kCollective
                                  ? price->channels
                                  : std::min<std::int64_t>(price->channels, 2);
  const std::int64_t processors =
      std::max<std::int64_t>(1, in_.scenario.cluster.spec.accelerator.sm_count);
  const double held = std::min(0.9, static_cast<double>(blocks) / static_cast<double>(processors));
  std::vector<Use> holds(draft.members.size());
  std::vector<MemberSpec> members;
  for (std::size_t m = 0; m < draft.members.size(); ++m) {
    const auto& [c, i] = draft.members[m];
    const Instruction& own = instruction(c, i);
    const sim::ResourceId processor = processors_[static_cast<std::size_t>(c)];
    MemberSpec member{stream(c, own.stream), {}, {}, {}};
    if (processor.valid() && own.stream != Stream::kCompute) {
      holds[m] = {processor, held};
      member.holds = {&holds[m], 1};
    }
    members.push_back(member);
  }
  std::vector<Use> uses;
  if (loads != nullptr) {
    for (const ClassLoad& load : *loads) {
      uses.push_back({links_[static_cast<std::size_t>(load.link_class)], load.weight});
    }
  }
  TaskSpec spec;
  spec.members = members;
  const auto pieces = static_cast<double>(what.pieces);
  spec.latency = sim::duration(price->latency * pieces);
  if (uses.empty()) {
    spec.latency = sim::duration((price->latency + price->work / price->rate_bound) * pieces);
  } else {
    spec.work = price->work.value() * pieces;
    spec.rate_bound = price->rate_bound.value();
    spec.share = static_cast<double>(std::max<std::int64_t>(1, price->channels));
    spec.uses = uses;
  }
  return workload_.add_task(spec);
}

void SimulationBuilder::add_waits(Simulation& out, std::int32_t step) {
  auto& now = out.tasks[static_cast<std::size_t>(step)];
  std::vector<std::int32_t> member_of(drafts_.size(), 0);
  for (std::int32_t c = 0; c < static_cast<std::int32_t>(classes()); ++c) {
    const auto& list = in_.costs.role(c).instructions;
    auto& own = now[static_cast<std::size_t>(c)];
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Instruction& what = list[i];
      if (idle(what)) continue;
      const bool sync = what.kind == InstructionKind::kHostSync;
      const sim::TaskId task = sync ? own[i].host : own[i].device_begin;
      std::int32_t member = 0;
      if (!sync) {
        const auto draft = static_cast<std::size_t>(device_draft_[static_cast<std::size_t>(c)][i]);
        member = member_of[draft]++;
        if (what.kind != InstructionKind::kRun) workload_.depend(own[i].host, task, member);
      }
      bool waits = false;
      for (const std::int32_t wait : what.waits) {
        if (wait < 0 || !own[static_cast<std::size_t>(wait)].device.valid()) continue;
        workload_.depend(own[static_cast<std::size_t>(wait)].device, task, member);
        waits = true;
      }
      // What opens a step on a side stream follows the update of the step before.
      if (!waits && step > 0 && what.kind == InstructionKind::kCollective &&
          what.stream == Stream::kGather) {
        const auto& before =
            out.tasks[static_cast<std::size_t>(step) - 1][static_cast<std::size_t>(c)];
        for (std::size_t j = before.size(); j-- > 0;) {
          if (list[j].stream != Stream::kCompute || !before[j].device.valid()) continue;
          workload_.depend(before[j].device, task, member);
          break;
        }
      }
    }
  }
}

void SimulationBuilder::add_step(Simulation& out, const std::vector<std::int32_t>& order,
                                 std::int32_t step) {
  auto& tasks = out.tasks.emplace_back();
  for (std::int32_t c = 0; c < static_cast<std::int32_t>(classes()); ++c) {
    tasks.emplace_back(in_.costs.role(c).instructions.size());
    // Data loading, logging and the loss scale: host work between steps.
    const MemberSpec member{stream(c, Stream::kHost), {}, {}, {}};
    TaskSpec spec;
    spec.members = {&member, 1};
    spec.latency = sim::duration(Seconds(in_.host.step_s));
    if (in_.host.step_s > 0) workload_.add_task(spec);
  }
  for (const std::int32_t d : order) {
    const Draft& draft = drafts_[static_cast<std::size_t>(d)];
    const auto& [c, i] = draft.members.front();
    const Instruction& what = instruction(c, i);
    InstructionTasks& own = tasks[static_cast<std::size_t>(c)][static_cast<std::size_t>(i)];
    if (draft.host) {
      // Expanded runs launch kernel by kernel.
      if (!in_.expand || what.kind != InstructionKind::kRun) own.host = add_host(c, what);
    } else if (what.kind == InstructionKind::kRun) {
      add_run(c, what, own);
    } else {
      const sim::TaskId task = add_transfer(draft);
      for (const auto& [mc, mi] : draft.members) {
        InstructionTasks& member = tasks[static_cast<std::size_t>(mc)][static_cast<std::size_t>(mi)];
        member.device = member.device_begin = task;
      }
    }
  }
  add_waits(out, step);
}

Result<Simulation> SimulationBuilder::run(std::int32_t steps) {
  draft_step();
  auto order = stream_order();
  if (!order) return failure(order.error());
  add_resources();
  Simulation out;
  out.steps = steps;
  for (std::int32_t step = 0; step < steps; ++step) add_step(out, *order, step);
  auto replay = sim::replay(workload_);
  if (!replay) return failure(replay.error());
  out.replay = std::move(*replay);
  out.task_count = out.replay.tasks.size();
  return out;
}

}  // namespace

Result<Simulation> simulate(const SimulationInput& input, std::int32_t steps) {
  return SimulationBuilder(input).run(steps);
}

}  // namespace stepcast
