// SPDX-License-Identifier: Apache-2.0
#include "predict/run_costs.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "core/assert.h"
#include "core/work_limits.h"
#include "layout/packed_documents.h"
#include "layout/scenario.h"
#include "predict/traffic.h"
#include "predict/uneven_ranks.h"
#include "program/block_groups.h"
#include "program/pass_pair.h"
#include "program/walk.h"

namespace stepcast {

RunCosts::RunCosts(const Scenario& scenario, const Program& program, const RankGrid& grid,
                   const Symmetry& symmetry, const KernelCosts& kernels,
                   const CollectiveCosts& collectives, SendsInPasses sends)
    : program_(program),
      kernels_(kernels),
      block_costs_(scenario, kernels, collectives),
      alone_(sends == SendsInPasses::kNothing),
      delays_wgrad_(scenario.layout.overlap.expert_wgrad) {
  for (const Role& role : program.roles) awaited_.emplace_back(role, grid);
  block_costs_.carry_attention(busiest_attention(scenario));
  std::vector<GroupMessage> sent =
      alone_ ? std::vector<GroupMessage>{} : messages_in_blocks(program);
  std::erase_if(sent, [](const GroupMessage& one) { return one.message.bytes <= kSmallMessage; });
  const std::vector<AxisGroup> in_blocks =
      alone_ ? std::vector<AxisGroup>{} : groups_in_blocks(program);
  const UnevenRanks uneven(scenario.cluster, grid, in_blocks);
  using Placed = std::tuple<std::vector<std::optional<GroupShape>>, std::vector<DeviceId>,
                            SiblingLinks, std::vector<GpuKind>>;
  std::map<Placed, std::int32_t> known;
  for (const std::vector<RankId>& ranks : symmetry.ranks) {
    end_if_stopped();
    const RankId rank = ranks.front();
    // Two groups of GPUs of one shape cost the same. Groups without a shape are told apart by their
    // devices: curves among processors are measured between particular nodes.
    std::vector<GroupPlacement> groups;
    std::vector<std::optional<GroupShape>> shapes;
    std::vector<DeviceId> particular;
    for (const AxisGroup group : in_blocks) {
      groups.push_back({group, devices_of(grid.members(group, rank))});
      const std::vector<DeviceId>& devices = groups.back().devices;
      shapes.push_back(collectives.shape(devices));
      if (!shapes.back()) std::ranges::copy(devices, std::back_inserter(particular));
    }
    SiblingLinks links =
        find_sibling_links(scenario, grid, collectives, sent, rank, sends == SendsInPasses::kApart);
    std::vector<GpuKind> kinds = uneven.kinds(rank);
    const auto [found, fresh] =
        known.try_emplace({std::move(shapes), std::move(particular), links, kinds},
                          static_cast<std::int32_t>(placements_.size()));
    if (fresh) {
      placements_.push_back({std::move(groups),
                             std::make_shared<const SiblingLinks>(std::move(links)),
                             std::move(kinds)});
    }
    const Role& role = program.roles[static_cast<std::size_t>(grid.point(rank).pp)];
    add_class(role, found->second);
  }
}

std::vector<PassDevice> RunCosts::pass_devices(const Placement& placement) const {
  std::vector<PassDevice> out;
  for (const GpuKind& kind : placement.kinds) {
    out.push_back({&kernels_.of_model(kind.model), kind.speed});
  }
  return out;
}

void RunCosts::add_class(const Role& role, std::int32_t placement) {
  const auto known = std::find_if(tables_.begin(), tables_.end(), [&](const Table& table) {
    return table.role == &role && table.placement == placement;
  });
  classes_.push_back({&role, static_cast<std::int32_t>(known - tables_.begin())});
  if (known != tables_.end()) return;

  Table& table = tables_.emplace_back(Table{&role, placement, {}, {}, {}});
  table.cost_of.assign(role.instructions.size(), -1);
  std::map<RunKey, std::int32_t> costs;
  for (std::size_t i = 0; i < role.instructions.size(); ++i) {
    const Instruction& what = role.instructions[i];
    const std::optional<RunKey> key = run_key(what);
    if (!key) continue;
    const auto [found, fresh] =
        costs.try_emplace(*key, static_cast<std::int32_t>(table.costs.size()));
    if (fresh) {
      RunCost& sum = table.costs.emplace_back();
      for (const PricedBlock* block : blocks_of(table, what)) sum.append(block->cost);
      table.shares.push_back(alternates(what) ? share_of_pair(table, *what.as<RunPass>()) : 1.0);
    }
    table.cost_of[i] = found->second;
  }
}

const RunCosts::PricedBlock& RunCosts::priced(std::int32_t placement, const BlockVisit& at,
                                              BlockId forward) const {
  const auto [found, fresh] = priced_.try_emplace({placement, at.block, at.pass, forward});
  PricedBlock& out = found->second;
  if (!fresh) return out;
  const std::vector<Operation>* operations = &operations_of(program_.block(at.block), at.pass);
  if (forward.valid()) {
    out.issued_in_turn = issue_in_turn(operations_of(program_.block(forward), Pass::kForward),
                                       *operations, delays_wgrad_);
    operations = &out.issued_in_turn;
  }
  const Placement& placed = placements_[static_cast<std::size_t>(placement)];
  block_costs_.use_groups(placed.groups, placed.links);
  if (!placed.kinds.empty()) block_costs_.use_devices(pass_devices(placed));
  out.operations = block_costs_.price_each(*operations);
  out.cost = replay_block(out.operations);
  return out;
}

// Layers that send tokens to experts alternate in the order in which each pass comes to them; the
// other blocks run by themselves.
std::vector<const RunCosts::PricedBlock*> RunCosts::blocks_of_pair(const Table& table,
                                                                   const RunPass& run) const {
  std::vector<const PricedBlock*> out;
  const auto layers_of = [&](const RunPass& pass) {
    std::vector<BlockVisit> layers;
    for_each_block(*table.role, pass, [&](const BlockVisit& at) {
      if (has_exchanges(operations_of(program_.block(at.block), at.pass))) {
        layers.push_back(at);
      } else {
        out.push_back(&priced(table.placement, at));
      }
    });
    return layers;
  };
  const std::vector<BlockVisit> forward = layers_of(partner_of(*table.role, run));
  const std::vector<BlockVisit> backward = layers_of(run);
  for (std::size_t i = 0; i < std::max(forward.size(), backward.size()); ++i) {
    const BlockId beside =
        i < std::min(forward.size(), backward.size()) ? forward[i].block : BlockId();
    out.push_back(&priced(table.placement, i < backward.size() ? backward[i] : forward[i], beside));
  }
  return out;
}

std::vector<const RunCosts::PricedBlock*> RunCosts::blocks_of(const Table& table,
                                                              const Instruction& what) const {
  if (leads_pair(what)) return blocks_of_pair(table, *what.as<RunPass>());
  std::vector<const PricedBlock*> out;
  if (alternates(what)) return out;
  for_each_block(*table.role, what,
                 [&](const BlockVisit& at) { out.push_back(&priced(table.placement, at)); });
  return out;
}

const PassTasks& RunCosts::tasks(std::int32_t rank_class, const Instruction& what,
                                 const std::vector<AxisGroup>& groups, bool each_operation) const {
  const std::int32_t table = this->table(rank_class);
  const auto [found, fresh] = tasks_.try_emplace({table, *run_key(what), groups, each_operation});
  if (fresh) {
    std::vector<std::span<const PricedOperation>> passes;
    for (const PricedBlock* block : blocks(rank_class, what)) passes.push_back(block->operations);
    found->second.tasks = tasks_of(passes, groups, each_operation);
    if (!each_operation) found->second.bounds = bounds_of(found->second.tasks);
  }
  return found->second;
}

// Returns its part of what both do by themselves, without the exchanges that the other one hides.
double RunCosts::share_of_pair(const Table& table, const RunPass& run) const {
  const auto computing = [&](const RunPass& pass) {
    Seconds sum;
    for_each_block(*table.role, pass, [&](const BlockVisit& at) {
      const RunCost& cost = priced(table.placement, at).cost;
      sum += cost.gpu - cost.communication(TrafficKind::kExpert);
    });
    return sum;
  };
  const Seconds own = computing(run), both = own + computing(partner_of(*table.role, run));
  return both.value() > 0 ? own / both : 0.5;
}

std::size_t RunCosts::cost_of(const Table& table, const Instruction& what) const {
  const auto index = static_cast<std::size_t>(&what - table.role->instructions.data());
  STEPCAST_ASSERT(index < table.cost_of.size() && table.cost_of[index] >= 0,
                  "a run of the role of this rank class");
  return static_cast<std::size_t>(table.cost_of[index]);
}

const RunCost& RunCosts::run(std::int32_t rank_class, const Instruction& what) const {
  const Table& table = table_of(rank_class);
  return table.costs[cost_of(table, what)];
}

const Waits& RunCosts::waits(std::int32_t rank_class, std::size_t i) const {
  return awaited_[static_cast<std::size_t>(role(rank_class).stage)].of(i);
}

double RunCosts::share_of_pair(std::int32_t rank_class, const Instruction& what) const {
  const Table& table = table_of(rank_class);
  return table.shares[cost_of(table, what)];
}

Seconds RunCosts::launch(const Instruction& instruction) const {
  if (instruction.host_copy() != nullptr) return block_costs_.launch_copy();
  if (instruction.is<HostUpdate>()) return Seconds(0);  // the host itself runs it
  if (alone_) return Seconds(0);                        // its transfers are not issued
  const auto* call = instruction.as<CollectiveCall>();
  if (call == nullptr) return block_costs_.launch_collective();
  return block_costs_.launch_collective(*call) * static_cast<double>(call->pieces);
}

}  // namespace stepcast
