// SPDX-License-Identifier: Apache-2.0
#include "predict/run_costs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/assert.h"
#include "predict/traffic.h"
#include "program/block_groups.h"
#include "program/walk.h"

namespace stepcast {

RunCosts::RunCosts(const Scenario& scenario, const Program& program, const RankGrid& grid,
                   const Symmetry& symmetry, const KernelCosts& kernels,
                   const CollectiveCosts& collectives, bool alone)
    : program_(program), block_costs_(scenario, kernels, collectives), alone_(alone) {
  const std::vector<AxisGroup> in_blocks =
      alone ? std::vector<AxisGroup>{} : groups_in_blocks(program);
  std::map<std::pair<std::vector<std::int64_t>, std::vector<double>>, std::int32_t> known;
  std::vector<BlockPrices> prices;  // by placement
  for (const std::vector<RankId>& ranks : symmetry.ranks) {
    const RankId rank = ranks.front();
    // Two groups of GPUs with the same pattern of nodes cost the same; among processors curves are
    // measured between particular nodes.
    std::vector<GroupPlacement> groups;
    std::vector<std::int64_t> pattern;
    std::vector<double> slowdowns;
    const bool is_cpu = scenario.cluster.spec.accelerator.is_cpu();
    for (const AxisGroup group : in_blocks) {
      groups.push_back({group, devices_of(grid.members(group, rank)),
                        lockstep_slowdown(scenario, grid, collectives, group, rank)});
      const std::vector<DeviceId>& devices = groups.back().devices;
      const std::int64_t base =
          is_cpu || devices.empty() ? 0 : scenario.cluster.node_of(devices.front());
      for (const DeviceId device : devices) {
        pattern.push_back(scenario.cluster.node_of(device) - base);
      }
      slowdowns.push_back(groups.back().slowdown);
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

RunCost RunCosts::BlockPrices::run(const Role& role, const Instruction& what) const {
  RunCost sum;
  for_each_block(role, what, [&](const BlockVisit& at) {
    sum.append(passes[at.block.index()][static_cast<std::size_t>(at.pass)]);
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
  block_costs_.use_groups(placements_[static_cast<std::size_t>(placement)]);
  std::map<RunKey, std::int32_t> costs;
  for (std::size_t i = 0; i < role.instructions.size(); ++i) {
    const Instruction& what = role.instructions[i];
    const std::optional<RunKey> key = run_key(what);
    if (!key) continue;
    const auto [found, fresh] =
        costs.try_emplace(*key, static_cast<std::int32_t>(table.costs.size()));
    if (fresh) {
      const bool whole = key->part == OperationRange{};
      table.costs.push_back(whole ? prices.run(role, what) : price_part(role, what));
    }
    table.cost_of[i] = found->second;
  }
}

RunCost RunCosts::price_part(const Role& role, const Instruction& what) const {
  RunCost sum;
  for_each_part(program_, role, what, [&](const BlockPart& part) {
    const std::vector<PricedOperation> priced =
        block_costs_.price_each(operations_of(program_.block(part.at.block), part.at.pass));
    for (std::size_t i = part.begin; i < part.end; ++i) sum.append(priced[i].cost);
    if (part.end == priced.size()) return;
    RunCost meeting;  // the collective behind it begins when the last member has come
    meeting.wait(priced[part.end].lag);
    sum.append(meeting);
  });
  return sum;
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
  block_costs_.use_groups(placements_[static_cast<std::size_t>(table.placement)]);
  for_each_part(program_, *entry.role, instruction, [&](const BlockPart& part) {
    const auto priced =
        block_costs_.price_each(operations_of(program_.block(part.at.block), part.at.pass));
    for (std::size_t i = part.begin; i < part.end; ++i) out.push_back(priced[i]);
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
