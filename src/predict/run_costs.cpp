// SPDX-License-Identifier: Apache-2.0
#include "predict/run_costs.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/assert.h"
#include "predict/traffic.h"
#include "program/block_groups.h"

namespace stepcast {
namespace {

bool is_forward(const Instruction& run) { return run.chunk < 0 || run.pass == Pass::kForward; }

// Blocks of an instruction in the order in which they run.
std::vector<BlockId> blocks_of(const Role& role, const Instruction& instruction) {
  if (instruction.chunk < 0) return {BlockId(instruction.block_begin)};
  const auto& blocks = role.chunks[static_cast<std::size_t>(instruction.chunk)].blocks;
  std::vector<BlockId> out(blocks.begin() + instruction.block_begin,
                           blocks.begin() + instruction.block_end);
  if (instruction.pass != Pass::kForward) std::reverse(out.begin(), out.end());
  return out;
}

// What tells two runs of one role apart, up to the micro-batch.
using RunKey = std::tuple<bool, std::int32_t, std::int32_t, std::int32_t>;
RunKey key_of(const Instruction& run) {
  return {is_forward(run), run.chunk, run.block_begin, run.block_end};
}

// Prices of all blocks, forward and backward.
struct BlockPrices {
  std::vector<RunCost> forward, backward;

  RunCost run(const Role& role, const Instruction& instruction) const {
    RunCost sum;
    for (const BlockId id : blocks_of(role, instruction)) {
      sum.append((is_forward(instruction) ? forward : backward)[id.index()]);
    }
    return sum;
  }
};

}  // namespace

RunCosts::RunCosts(const Scenario& scenario, const Program& program, const RankGrid& grid,
                   const Symmetry& symmetry, const KernelCosts& kernels,
                   const CollectiveCosts& collectives, bool alone)
    : program_(program), block_costs_(std::in_place, scenario, kernels, collectives) {
  if (!alone) launch_collective_ = block_costs_->launch_collective();
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
      block_costs_->use_groups(groups);
      placements_.push_back(std::move(groups));
      BlockPrices& priced = prices.emplace_back();
      for (const Block& block : program.blocks) {
        priced.forward.push_back(block_costs_->price(block.forward));
        priced.backward.push_back(block_costs_->price(block.backward));
      }
    }
    const BlockPrices& own = prices[static_cast<std::size_t>(found->second)];
    add_class(program, grid, rank, found->second,
              [&own](const Role& role, const Instruction& run) { return own.run(role, run); });
  }
}

RunCosts::RunCosts(const Program& program, const RankGrid& grid, const Symmetry& symmetry,
                   const PriceRun& price_run)
    : program_(program) {
  for (const std::vector<RankId>& ranks : symmetry.ranks) {
    add_class(program, grid, ranks.front(), 0, price_run);
  }
}

void RunCosts::add_class(const Program& program, const RankGrid& grid, RankId representative,
                         std::int32_t placement, const PriceRun& price_run) {
  const Role& role = program.roles[static_cast<std::size_t>(grid.point(representative).pp)];
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
    if (what.kind != InstructionKind::kRun) continue;
    const auto [found, fresh] =
        costs.try_emplace(key_of(what), static_cast<std::int32_t>(table.costs.size()));
    if (fresh) table.costs.push_back(price_run(role, what));
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
  if (!block_costs_) return out;
  const RankClassEntry& entry = classes_[static_cast<std::size_t>(rank_class)];
  const Table& table = tables_[static_cast<std::size_t>(entry.table)];
  block_costs_->use_groups(placements_[static_cast<std::size_t>(table.placement)]);
  for (const BlockId id : blocks_of(*entry.role, instruction)) {
    const Block& block = program_.block(id);
    const auto& operations = is_forward(instruction) ? block.forward : block.backward;
    for (const PricedOperation& priced : block_costs_->price_each(operations)) {
      out.push_back(priced);
    }
  }
  return out;
}

}  // namespace stepcast
