// SPDX-License-Identifier: Apache-2.0
#include "predict/run_costs.h"

#include <algorithm>

#include "predict/traffic.h"

namespace stepcast {
namespace {

// Blocks of an instruction in the order in which they run.
std::vector<BlockId> blocks_of(const Role& role, const Instruction& instruction) {
  if (instruction.chunk < 0) return {BlockId(instruction.block_begin)};
  const auto& blocks = role.chunks[static_cast<std::size_t>(instruction.chunk)].blocks;
  std::vector<BlockId> out(blocks.begin() + instruction.block_begin,
                           blocks.begin() + instruction.block_end);
  if (instruction.pass != Pass::kForward) std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace

RunCosts::RunCosts(const Scenario& scenario, const Program& program, const RankGrid& grid,
                   const Symmetry& symmetry, const KernelCosts& kernels,
                   const CollectiveCosts& collectives)
    : scenario_(scenario),
      program_(program),
      grid_(grid),
      symmetry_(symmetry),
      costs_(scenario, kernels, collectives),
      launch_collective_(costs_.launch_collective()) {
  std::map<std::pair<std::vector<std::int64_t>, double>, std::int32_t> known;
  for (std::size_t c = 0; c < symmetry.ranks.size(); ++c) {
    const RankId rank = symmetry.ranks[c].front();
    Placement placement{devices_of(grid.members(GroupKind::kTensor, rank)),
                        tensor_group_slowdown(scenario, grid, collectives, rank)};
    // Two groups with the same pattern of nodes cost the same.
    std::vector<std::int64_t> pattern;
    const std::int64_t base = scenario.cluster.node_of(placement.devices.front());
    for (const DeviceId device : placement.devices) {
      pattern.push_back(scenario.cluster.node_of(device) - base);
    }
    const auto [found, fresh] = known.try_emplace({pattern, placement.slowdown},
                                                  static_cast<std::int32_t>(placements_.size()));
    placement_of_.push_back(found->second);
    if (!fresh) continue;
    costs_.use_tensor_group(placement.devices, placement.slowdown);
    placements_.push_back(std::move(placement));
    forward_.emplace_back();
    backward_.emplace_back();
    for (const Block& block : program.blocks) {
      forward_.back().push_back(costs_.price(block.forward));
      backward_.back().push_back(costs_.price(block.backward));
    }
  }
  runs_.resize(placements_.size());
}

const Role& RunCosts::role(std::int32_t rank_class) const {
  const RankId rank = symmetry_.ranks[static_cast<std::size_t>(rank_class)].front();
  return program_.roles[static_cast<std::size_t>(grid_.point(rank).pp)];
}

const RunCost& RunCosts::run(std::int32_t rank_class, const Instruction& instruction) const {
  const auto placement = static_cast<std::size_t>(placement_of_[static_cast<std::size_t>(rank_class)]);
  const Role& where = role(rank_class);
  const bool forward = instruction.chunk < 0 || instruction.pass == Pass::kForward;
  const Key key{where.stage, forward, instruction.chunk, instruction.block_begin,
                instruction.block_end};
  const auto [found, fresh] = runs_[placement].try_emplace(key);
  if (fresh) {
    for (const BlockId id : blocks_of(where, instruction)) {
      found->second.append((forward ? forward_ : backward_)[placement][id.index()]);
    }
  }
  return found->second;
}

std::vector<PricedOperation> RunCosts::operations(std::int32_t rank_class,
                                                  const Instruction& instruction) const {
  const Placement& placement =
      placements_[static_cast<std::size_t>(placement_of_[static_cast<std::size_t>(rank_class)])];
  costs_.use_tensor_group(placement.devices, placement.slowdown);
  const bool forward = instruction.chunk < 0 || instruction.pass == Pass::kForward;
  std::vector<PricedOperation> out;
  for (const BlockId id : blocks_of(role(rank_class), instruction)) {
    const Block& block = program_.block(id);
    for (PricedOperation& priced : costs_.price_each(forward ? block.forward : block.backward)) {
      out.push_back(std::move(priced));
    }
  }
  return out;
}

}  // namespace stepcast
