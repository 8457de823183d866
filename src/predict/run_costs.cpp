// SPDX-License-Identifier: Apache-2.0
#include "predict/run_costs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/assert.h"
#include "predict/traffic.h"
#include "program/block_groups.h"
#include "program/pass_pair.h"
#include "program/walk.h"

namespace stepcast {

RunCosts::RunCosts(const Scenario& scenario, const Program& program, const RankGrid& grid,
                   const Symmetry& symmetry, const KernelCosts& kernels,
                   const CollectiveCosts& collectives, bool alone)
    : program_(program), block_costs_(scenario, kernels, collectives), alone_(alone) {
  const std::vector<AxisGroup> in_blocks =
      alone ? std::vector<AxisGroup>{} : groups_in_blocks(program);
  const std::vector<GroupMessage> largest = largest_in_blocks(program);
  using Slowdowns = decltype(GroupPlacement::slowdowns);
  std::map<std::pair<std::vector<std::int64_t>, std::vector<Slowdowns>>, std::int32_t> known;
  std::vector<BlockPrices> prices;  // by placement
  for (const std::vector<RankId>& ranks : symmetry.ranks) {
    const RankId rank = ranks.front();
    // Two groups of GPUs with the same pattern of nodes cost the same; among processors curves are
    // measured between particular nodes.
    std::vector<GroupPlacement> groups;
    std::vector<std::int64_t> pattern;
    std::vector<Slowdowns> slowdowns;
    const bool is_cpu = scenario.cluster.spec.accelerator.is_cpu();
    for (const AxisGroup group : in_blocks) {
      groups.push_back({group, devices_of(grid.members(group, rank)),
                        lockstep_slowdowns(scenario, grid, collectives, group, largest, rank)});
      const std::vector<DeviceId>& devices = groups.back().devices;
      const std::int64_t base =
          is_cpu || devices.empty() ? 0 : scenario.cluster.node_of(devices.front());
      for (const DeviceId device : devices) {
        pattern.push_back(scenario.cluster.node_of(device) - base);
      }
      slowdowns.push_back(groups.back().slowdowns);
    }
    const auto [found, fresh] = known.try_emplace({std::move(pattern), std::move(slowdowns)},
                                                  static_cast<std::int32_t>(placements_.size()));
    if (fresh) {
      block_costs_.use_groups(groups);
      placements_.push_back(std::move(groups));
      prices.push_back(price_blocks());
    }
    const Role& role = program.roles[static_cast<std::size_t>(grid.point(rank).pp)];
    add_class(role, found->second, prices[static_cast<std::size_t>(found->second)]);
  }
}

RunCosts::BlockPrices RunCosts::price_blocks() const {
  BlockPrices out;
  for (const Block& block : program_.blocks) {
    std::array<RunCost, kPasses>& own = out.passes.emplace_back();
    for (const Pass pass : passes_of(block.form)) {
      own[static_cast<std::size_t>(pass)] = block_costs_.price(operations_of(block, pass));
    }
  }
  return out;
}

void RunCosts::add_class(const Role& role, std::int32_t placement, const BlockPrices& prices) {
  const auto known = std::find_if(tables_.begin(), tables_.end(), [&](const Table& table) {
    return table.role == &role && table.placement == placement;
  });
  classes_.push_back({&role, static_cast<std::int32_t>(known - tables_.begin())});
  if (known != tables_.end()) return;

  Table& table = tables_.emplace_back(Table{&role, placement, {}, {}});
  table.cost_of.assign(role.instructions.size(), -1);
  std::map<RunKey, std::int32_t> costs;
  for (std::size_t i = 0; i < role.instructions.size(); ++i) {
    const Instruction& what = role.instructions[i];
    const std::optional<RunKey> key = run_key(what);
    if (!key) continue;
    const auto [found, fresh] =
        costs.try_emplace(*key, static_cast<std::int32_t>(table.costs.size()));
    if (fresh) {
      const bool whole = key->part == OperationRange{};
      table.costs.push_back(key->beside ? price_beside(table, *what.as<RunPass>(), prices)
                            : whole     ? prices.run(role, what)
                                        : price_part(table, what));
    }
    table.cost_of[i] = found->second;
  }
}

const RunCosts::PricedBlock& RunCosts::priced(std::int32_t placement, const BlockVisit& at) const {
  const auto [found, fresh] = priced_.try_emplace({placement, at.block, at.pass});
  if (fresh) {
    block_costs_.use_groups(placements_[static_cast<std::size_t>(placement)]);
    found->second = block_costs_.price_each(operations_of(program_.block(at.block), at.pass));
  }
  return found->second;
}

std::vector<RunCosts::PricedBlock> RunCosts::price_each(const Table& table,
                                                        const Instruction& what) const {
  std::vector<PricedBlock> out;
  for_each_part(program_, *table.role, what, [&](const BlockPart& part) {
    const PricedBlock& all = priced(table.placement, part.at);
    out.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(part.begin),
                     all.begin() + static_cast<std::ptrdiff_t>(part.end));
  });
  return out;
}

RunCost RunCosts::price_meeting(const Table& table, const Instruction& what) const {
  RunCost out;
  const auto* pass = what.as<RunPass>();
  if (pass == nullptr || !pass->part.meets) return out;
  std::int32_t place = pass->part.end;  // of the collective, counted from the block at hand
  for_each_block(*table.role, *pass, [&](const BlockVisit& at) {
    const PricedBlock& all = priced(table.placement, at);
    const auto count = static_cast<std::int32_t>(all.size());
    if (place >= 0 && place < count) {
      const PricedOperation& one = all[static_cast<std::size_t>(place)];
      out.wait(std::get<Collective>(one.operation->work).group, one.lag);
    }
    place -= count;
  });
  return out;
}

// Its operations run one after the other on one stream.
RunCost RunCosts::price_part(const Table& table, const Instruction& what) const {
  RunCost sum;
  for (const PricedBlock& block : price_each(table, what)) {
    for (const PricedOperation& one : block) sum.append(one.cost);
  }
  sum.append(price_meeting(table, what));
  return sum;
}

// Layers that send tokens to experts alternate in the order in which each pass comes to them; the
// other blocks run by themselves.
RunCost RunCosts::price_pair(const Table& table, const RunPass& forward, const RunPass& backward,
                             const BlockPrices& prices) const {
  RunCost sum;
  const auto layers_of = [&](const RunPass& run) {
    std::vector<BlockVisit> out;
    for_each_block(*table.role, run, [&](const BlockVisit& at) {
      if (has_exchanges(operations_of(program_.block(at.block), at.pass))) {
        out.push_back(at);
      } else {
        sum.append(prices.of(at));
      }
    });
    return out;
  };
  const std::vector<BlockVisit> one = layers_of(forward), other = layers_of(backward);
  block_costs_.use_groups(placements_[static_cast<std::size_t>(table.placement)]);
  std::map<std::pair<BlockId, BlockId>, RunCost> known;
  for (std::size_t i = 0; i < std::max(one.size(), other.size()); ++i) {
    if (i >= one.size() || i >= other.size()) {
      sum.append(prices.of(i < one.size() ? one[i] : other[i]));
      continue;
    }
    const auto [found, fresh] = known.try_emplace({one[i].block, other[i].block});
    if (fresh) {
      found->second = block_costs_.price(
          issue_in_turn(operations_of(program_.block(one[i].block), one[i].pass),
                        operations_of(program_.block(other[i].block), other[i].pass)));
    }
    sum.append(found->second);
  }
  return sum;
}

// The part of the pair's time that the pass has of what both compute.
RunCost RunCosts::price_beside(const Table& table, const RunPass& run,
                               const BlockPrices& prices) const {
  const auto blocks = static_cast<std::int32_t>(
      table.role->chunks[static_cast<std::size_t>(run.beside->chunk)].blocks.size());
  const RunPass other{*run.beside, 0, blocks};
  const bool is_forward = run.slot.pass == Pass::kForward;
  const RunCost both =
      is_forward ? price_pair(table, run, other, prices) : price_pair(table, other, run, prices);
  const RunCost alone = prices.run(*table.role, run), beside = prices.run(*table.role, other);
  const Seconds own = alone.gpu - alone.communication(TrafficKind::kExpert);
  const Seconds sum = own + beside.gpu - beside.communication(TrafficKind::kExpert);
  const double share = sum.value() > 0 ? own / sum : 0.5;
  RunCost out = both.exposed(both.gpu * share);
  out.host = alone.host;
  out.flops = alone.flops;
  out.floor = std::max({both.floor * share, out.host, out.gpu});
  return out;
}

const RunCost& RunCosts::run(std::int32_t rank_class, const Instruction& instruction) const {
  const RankClassEntry& entry = classes_[static_cast<std::size_t>(rank_class)];
  const Table& table = tables_[static_cast<std::size_t>(entry.table)];
  const auto index = static_cast<std::size_t>(&instruction - table.role->instructions.data());
  STEPCAST_ASSERT(index < table.cost_of.size() && table.cost_of[index] >= 0,
                  "a run of the role of this rank class");
  return table.costs[static_cast<std::size_t>(table.cost_of[index])];
}

std::vector<RunCosts::PricedBlock> RunCosts::operations(std::int32_t rank_class,
                                                        const Instruction& instruction) const {
  return price_each(table_of(rank_class), instruction);
}

RunCost RunCosts::meeting(std::int32_t rank_class, const Instruction& instruction) const {
  return price_meeting(table_of(rank_class), instruction);
}

Seconds RunCosts::launch(const Instruction& instruction) const {
  if (instruction.is<HostCopy>()) return block_costs_.launch_copy();
  if (alone_) return Seconds(0);  // its transfers are not issued
  const auto* call = instruction.as<CollectiveCall>();
  if (call == nullptr) return block_costs_.launch_collective();
  return block_costs_.launch_collective(*call) * static_cast<double>(call->pieces);
}

}  // namespace stepcast
