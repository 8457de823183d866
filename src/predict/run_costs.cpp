// SPDX-License-Identifier: Apache-2.0
#include "predict/run_costs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/assert.h"
#include "predict/traffic.h"
#include "program/walk.h"

namespace stepcast {

RunCosts::RunCosts(const Scenario& scenario, const Program& program, const RankGrid& grid,
                   const Symmetry& symmetry, const KernelCosts& kernels,
                   const CollectiveCosts& collectives, bool alone)
    : program_(program), block_costs_(scenario, kernels, collectives), alone_(alone) {
  std::map<std::pair<std::vector<std::int64_t>, double>, std::int32_t> known;
  std::vector<BlockPrices> prices;  // by placement
  for (const std::vector<RankId>& ranks : symmetry.ranks) {
    const RankId rank = ranks.front();
    Placement group{devices_of({rank}), 1};
    if (!alone) {
      group = {devices_of(grid.members(GroupKind::kTensor, rank)),
               tensor_group_slowdown(scenario, grid, collectives, rank)};
    }
    // Two groups of GPUs with the same pattern of nodes cost the same; among processors curves are
    // measured between particular nodes.
    std::vector<std::int64_t> pattern;
    const bool is_cpu = scenario.cluster.spec.accelerator.is_cpu();
    const std::int64_t base = is_cpu ? 0 : scenario.cluster.node_of(group.devices.front());
    for (const DeviceId device : group.devices) {
      pattern.push_back(scenario.cluster.node_of(device) - base);
    }
    const auto [found, fresh] = known.try_emplace({std::move(pattern), group.slowdown},
                                                  static_cast<std::int32_t>(placements_.size()));
    if (fresh) {
      block_costs_.use_tensor_group(group.devices, group.slowdown);
      placements_.push_back(std::move(group));
      prices.push_back(price_blocks());
    }
    const Role& role = program.roles[static_cast<std::size_t>(grid.point(rank).pp)];
    add_class(role, found->second, prices[static_cast<std::size_t>(found->second)]);
  }
}

RunCosts::BlockPrices RunCosts::price_blocks() const {
  BlockPrices out;
  for (const Block& block : program_.blocks) {
    out.forward.push_back(block_costs_.price(block.forward));
    out.backward.push_back(block_costs_.price(block.backward));
  }
  return out;
}

RunCost RunCosts::BlockPrices::run(const Role& role, const Instruction& what) const {
  RunCost sum;
  for_each_block(role, what, [&](const BlockVisit& at) {
    sum.append((at.pass == Pass::kForward ? forward : backward)[at.block.index()]);
  });
  return sum;
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
    if (fresh) table.costs.push_back(prices.run(role, what));
    table.cost_of[i] = found->second;
  }
}

const RunCost& RunCosts::run(std::int32_t rank_class, const Instruction& instruction) const {
  const RankClassEntry& entry = classes_[static_cast<std::size_t>(rank_class)];
  const Table& table = tables_[static_cast<std::size_t>(entry.table)];
  const auto index = static_cast<std::size_t>(&instruction - table.role->instructions.data());
  STEPCAST_ASSERT(index < table.cost_of.size() && table.cost_of[index] >= 0,
                  "a run of the role of this rank class");
  return table.costs[static_cast<std::size_t>(table.cost_of[index])];
}

std::vector<PricedOperation> RunCosts::operations(std::int32_t rank_class,
                                                  const Instruction& instruction) const {
  std::vector<PricedOperation> out;
  const RankClassEntry& entry = classes_[static_cast<std::size_t>(rank_class)];
  const Table& table = tables_[static_cast<std::size_t>(entry.table)];
  const Placement& placement = placements_[static_cast<std::size_t>(table.placement)];
  block_costs_.use_tensor_group(placement.devices, placement.slowdown);
  for_each_block(*entry.role, instruction, [&](const BlockVisit& at) {
    const Block& block = program_.block(at.block);
    for (PricedOperation& priced : block_costs_.price_each(operations_of(block, at.pass))) {
      out.push_back(std::move(priced));
    }
  });
  return out;
}

Seconds RunCosts::launch(const Instruction& instruction) const {
  if (instruction.is<HostCopy>()) return block_costs_.launch_copy();
  if (alone_) return Seconds(0);  // its transfers are not issued
  const auto* call = instruction.as<CollectiveCall>();
  return block_costs_.launch_collective() * (call != nullptr ? call->pieces : 1.0);
}

}  // namespace stepcast
