// SPDX-License-Identifier: Apache-2.0
#include "replay/program_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "graphs/graph_groups.h"
#include "layout/scenario.h"
#include "predict/host_update.h"
#include "predict/pricing.h"
#include "predict/run_costs.h"
#include "predict/timed_orders.h"
#include "predict/traffic.h"
#include "program/block_groups.h"
#include "program/instruction.h"
#include "program/pass_pair.h"
#include "program/program.h"

namespace stepcast {
namespace {

GraphCollective kind_in_graph(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return GraphCollective::kAllReduce;
    case CollectiveKind::kAllGather:
      return GraphCollective::kAllGather;
    case CollectiveKind::kReduceScatter:
      return GraphCollective::kReduceScatter;
    case CollectiveKind::kBroadcast:
      return GraphCollective::kBroadcast;
    default:
      return GraphCollective::kAllToAll;
  }
}

// Chakra has 32 bits for a tag, of which a program has the chunk of the model in the upper 32 of 64
// and the micro-batch below.
std::int64_t short_tag(std::int64_t tag) { return (tag >> 32) << 20 | (tag & 0xfffff); }

// A scenario lowered and priced.
struct PricedProgram {
  PricedProgram(const Scenario& of, const Pricing& pricing)
      : scenario(of),
        grid(of.layout),
        program(lower(of, timed_orders(of, pricing))),
        traffic(place_traffic(of, program, grid, pricing.collectives, kNoStamps, pricing.units)),
        symmetry(find_symmetry(of, grid, traffic, pricing.collectives, true)),
        costs(of, program, grid, symmetry, pricing.kernels, pricing.collectives,
              SendsInPasses::kApart),
        host(pricing.kernels.profile().host[of.training.framework]),
        host_memory(pricing.kernels.profile().host_memory) {
    for (const AxisGroup group : groups_in_blocks(program)) {
      if (grid.group_size(group) > 1) groups.push_back(group);
    }
  }

  const Scenario& scenario;
  RankGrid grid;
  Program program;
  Traffic traffic;
  Symmetry symmetry;
  RunCosts costs;
  HostFit host;
  std::optional<HostMemory> host_memory;
  std::vector<AxisGroup> groups;  // that communicate inside passes
};

class RankWriter {
 public:
  RankWriter(const PricedProgram& priced, ExecutionGraph& graph, GroupTable& groups,
             std::unordered_map<std::string, std::int32_t>& names, RankId rank)
      : in_(priced), graph_(graph), groups_(groups), names_(names), rank_(rank) {
    last_.fill(kNowhere);
    after_host_.fill(0);
  }

  void write() {
    const std::int32_t rank_class = in_.symmetry.class_of_rank[rank_.index()];
    class_ = rank_class;
    const Role& role = in_.costs.role(rank_class);
    ends_.assign(role.instructions.size(), kNowhere);
    if (in_.host.step_s > 0) {
      GraphNode between = node(NodeKind::kHost, "between steps");
      between.duration = Seconds(in_.host.step_s);
      host_.push_back(add(between, {}));
    }
    for (std::size_t i = 0; i < role.instructions.size(); ++i) write(role, i);
  }

 private:
  RankGraph& out() { return graph_.ranks[rank_.index()]; }

  GraphNode node(NodeKind kind, const std::string& name) {
    GraphNode one;
    one.kind = kind;
    const auto [known, fresh] = names_.try_emplace(name, static_cast<std::int32_t>(names_.size()));
    if (fresh) graph_.names.push_back(name);
    one.name = known->second;
    return one;
  }

  std::int32_t add(GraphNode one, std::vector<std::int32_t> after) {
    std::ranges::sort(after);
    after.erase(std::unique(after.begin(), after.end()), after.end());
    one.id = out().nodes.size();
    one.first_dependency = static_cast<std::int32_t>(out().dependencies.size());
    for (const std::int32_t before : after) {
      if (before == kNowhere) continue;
      out().dependencies.push_back({before});
      ++one.dependencies;
    }
    out().nodes.push_back(one);
    return static_cast<std::int32_t>(out().nodes.size()) - 1;
  }

  // Behind the last node of its stream, and behind what the host has waited for since.
  std::int32_t add_on(Stream stream, const GraphNode& one, std::vector<std::int32_t> after) {
    const auto s = static_cast<std::size_t>(stream);
    after.push_back(last_[s]);
    for (std::size_t& i = after_host_[s]; i < host_.size(); ++i) after.push_back(host_[i]);
    last_[s] = add(one, std::move(after));
    return last_[s];
  }

  std::vector<std::int32_t> waits_of(std::size_t i) const {
    std::vector<std::int32_t> out;
    for (const std::int32_t wait : in_.costs.waits(class_, i)) {
      out.push_back(ends_[static_cast<std::size_t>(wait)]);
    }
    return out;
  }

  void write(const Role& role, std::size_t i) {
    const Instruction& what = role.instructions[i];
    if (what.is_run()) return write_run(what, i);
    if (what.is<HostWait>()) {
      for (const std::int32_t wait : waits_of(i)) {
        if (wait != kNowhere) host_.push_back(wait);
      }
      return;
    }
    if (const auto* call = what.as<CollectiveCall>()) return write_call(what, *call, i);
    if (const auto* copy = what.host_copy()) return write_copy(what, *copy, i);
    if (const auto* update = what.as<HostUpdate>()) return write_update(what, *update, i);
    write_transfer(what, i);
  }

  void write_run(const Instruction& what, std::size_t i) {
    if (alternates(what) && !leads_pair(what)) {  // the pair is all in the first of the two
      ends_[i] = ends_[i - 1];
      return;
    }
    const std::vector<PassTask>& pass = in_.costs.tasks(class_, what, in_.groups, false).tasks;
    // A host that takes longer to issue the pass than the device to run it sets the pace.
    const RunCost& cost = in_.costs.run(class_, what);
    Seconds behind = std::max(Seconds(0), cost.host - cost.gpu);
    std::vector<std::int32_t> made;
    bool begun = false;
    for (const PassTask& task : pass) {
      std::vector<std::int32_t> after;
      for (const std::int32_t before : task.after) {
        after.push_back(made[static_cast<std::size_t>(before)]);
      }
      const bool computes = task.stream == Stream::kCompute;
      if (!begun && computes) {
        for (const std::int32_t wait : waits_of(i)) after.push_back(wait);
        begun = true;
      }
      if (task.call != nullptr) {
        made.push_back(write_collective(what, std::get<Collective>(task.call->work), task, after));
      } else {
        made.push_back(write_work(what, task, after, behind));
        behind = Seconds(0);
      }
      if (computes && made.back() != kNowhere) ends_[i] = made.back();
    }
  }

  std::int32_t write_work(const Instruction& what, const PassTask& task,
                          std::vector<std::int32_t> after, Seconds behind) {
    GraphNode one = node(NodeKind::kCompute, what.name);
    one.duration = task.cost.gpu + behind;
    one.flops = task.cost.flops.value();
    // The optimizer only reads and writes memory.
    one.bytes = (task.cost.memory_bound + task.cost.optimizer).value() *
                in_.scenario.cluster.spec.accelerator.memory_bandwidth.value();
    one.lane = static_cast<std::uint16_t>(task.stream);
    if (one.duration.value() <= 0) one.kind = NodeKind::kNothing;
    return add_on(task.stream, one, std::move(after));
  }

  std::int32_t group_of(AxisGroup group) {
    std::vector<std::int32_t> ranks;
    for (const RankId member : in_.grid.members(group, rank_)) ranks.push_back(member.value);
    return groups_.number_of(ranks);
  }

  std::int32_t write_collective(const Instruction& what, const Collective& collective,
                                const PassTask& task, std::vector<std::int32_t> after) {
    return write_message({what.name, task.stream, collective.group, message_of(collective)},
                         std::move(after));
  }

  struct GroupMessageOf {
    const char* name;
    Stream stream;
    AxisGroup group;
    Message message;
  };
  std::int32_t write_message(const GroupMessageOf& of, std::vector<std::int32_t> after) {
    GraphNode one = node(NodeKind::kCollective, fmt::format("{} {}", of.name, name_of(of.group)));
    one.collective = kind_in_graph(of.message.kind);
    one.bytes = static_cast<double>(of.message.bytes);
    one.group = group_of(of.group);
    return add_on(of.stream, one, std::move(after));
  }

  void write_call(const Instruction& what, const CollectiveCall& call, std::size_t i) {
    if (is_idle(what, in_.grid) || in_.grid.group_of(call.group, rank_) < 0) return;
    for (std::int32_t piece = 0; piece < call.pieces; ++piece) {
      ends_[i] = write_message({what.name, what.stream, call.group, call.piece()},
                               piece == 0 ? waits_of(i) : std::vector<std::int32_t>{});
    }
  }

  void write_copy(const Instruction& what, const HostCopy& copy, std::size_t i) {
    GraphNode one = node(NodeKind::kHost, what.name);
    const PairTraffic* copies =
        in_.traffic.find_copies(in_.costs.role(class_).stage, copy.direction);
    if (copies != nullptr) {
      const auto pair = static_cast<std::size_t>(in_.traffic.orbit_of_sender(*copies, rank_));
      const CollectivePrice& price = copies->orbits[pair].price;
      const BytesPerSecond rate =
          host_copy_rate(in_.scenario, price.rate_bound, in_.host_memory);
      one.duration = price.latency + Bytes(static_cast<double>(copy.bytes)) / rate;
    }
    one.lane = static_cast<std::uint16_t>(what.stream);
    ends_[i] = add_on(what.stream, one, waits_of(i));
  }

  void write_update(const Instruction& what, const HostUpdate& update, std::size_t i) {
    GraphNode one = node(NodeKind::kHost, what.name);
    one.duration = host_update_time(in_.scenario, update, in_.host_memory);
    one.lane = static_cast<std::uint16_t>(what.stream);
    ends_[i] = add_on(what.stream, one, waits_of(i));
  }

  void write_transfer(const Instruction& what, std::size_t i) {
    const StageTransfer& transfer = *what.transfer();
    const bool sends = what.is<Send>();
    GraphNode one = node(sends ? NodeKind::kSend : NodeKind::kReceive, what.name);
    GridPoint point = in_.grid.point(rank_);
    point.pp = transfer.peer;
    one.peer = in_.grid.rank(point).value;
    one.tag = short_tag(transfer.tag);
    one.bytes = static_cast<double>(transfer.bytes);
    ends_[i] = add_on(what.stream, one, waits_of(i));
  }

  const PricedProgram& in_;
  ExecutionGraph& graph_;
  GroupTable& groups_;
  std::unordered_map<std::string, std::int32_t>& names_;
  RankId rank_;
  std::int32_t class_ = 0;
  std::array<std::int32_t, kStreams> last_;
  std::vector<std::int32_t> host_;                // that the host has waited for, in order
  std::array<std::size_t, kStreams> after_host_;  // how many of them the stream is behind
  std::vector<std::int32_t> ends_;                // by instruction
};

}  // namespace

Result<ExecutionGraph> program_graph(const Scenario& scenario, const DataFolders& folders) {
  const auto pricing = make_pricing(scenario, folders);
  if (!pricing) return failure(pricing.error());
  const PricedProgram priced(scenario, **pricing);
  ExecutionGraph graph;
  graph.format = "Chakra";
  graph.ranks.resize(static_cast<std::size_t>(priced.grid.size()));
  GroupTable groups(graph.groups);
  std::unordered_map<std::string, std::int32_t> names;
  std::int64_t nodes = 0;
  for (std::size_t r = 0; r < graph.ranks.size(); ++r) {
    RankWriter(priced, graph, groups, names, RankId(r)).write();
    nodes += static_cast<std::int64_t>(graph.ranks[r].nodes.size());
    if (nodes > kMostGraphNodes) {
      return failure({ErrorCode::kBadValue,
                      fmt::format("makes more than {} nodes on {} of {} ranks", kMostGraphNodes,
                                  r + 1, graph.ranks.size()),
                      "", "training.global_batch", "a smaller batch, or fewer ranks"});
    }
  }
  return graph;
}

}  // namespace stepcast
