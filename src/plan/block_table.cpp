// SPDX-License-Identifier: Apache-2.0
#include "plan/block_table.h"

#include <algorithm>

#include "layout/scenario.h"
#include "predict/pricing.h"
#include "program/block_groups.h"
#include "program/decoder_layer.h"
#include "program/embedding_block.h"
#include "program/head_block.h"
#include "program/walk.h"

namespace stepcast {
namespace {

PassMemory memory_in(const Block& block, Pass pass) {
  const MemoryTrace& trace = memory_of(block, pass);
  return {total(trace.after), trace.peak};
}

BlockFacts least_of(const BlockFacts& one, const BlockFacts& other) {
  BlockFacts out;
  for (std::size_t i = 0; i < out.passes.size(); ++i) {
    const PassFacts &a = one.passes[i], &b = other.passes[i];
    out.passes[i] = {
        {std::min(a.cost.gpu, b.cost.gpu), std::min(a.cost.floor, b.cost.floor),
         std::min(a.cost.host, b.cost.host)},
        {std::min(a.memory.left, b.memory.left), std::min(a.memory.peak, b.memory.peak)}};
  }
  return out;
}

// The blocks depend on these keys alone, wherever their ranks lie.
LayoutCode code_of_blocks(const LayoutCode& code) {
  LayoutCode key =
      code.without({Field::kDp, Field::kSchedule, Field::kVirtualStages, Field::kRecomputeLayers,
                    Field::kRecomputeEvery, Field::kOrder, Field::kOverlapGradReduce,
                    Field::kOverlapParamGather, Field::kOverlapPp});
  // The head has a table of its own or not; nothing else of a block knows of stages.
  key[Field::kPp] = code.of(Field::kPp) > 1;
  // ZeRO-1 and 2 shard what is outside the blocks.
  key[Field::kZero] = code.of(Field::kZero) == 3;
  return key;
}

}  // namespace

PassCost cost_of(const RunCost& cost) {
  return {cost.gpu.value(), cost.floor.value(), cost.host.value()};
}

BlockFacts BlockTable::facts_of(const Block& block, const BlockCosts& costs) const {
  BlockFacts out;
  for (const Pass pass : passes_of(block.form)) {
    RunCost cost = costs.price(operations_of(block, pass));
    if (scenario_.layout.overlap.ep) {  // no exchange is sure to be seen
      cost.gpu -= cost.communication(TrafficKind::kExpert);
      // Ranks of one expert exchange rows in a group that counts as tensor parallel.
      if (scenario_.layout.etp > 1) cost.gpu -= cost.communication(TrafficKind::kTensor);
      cost.floor = std::max(cost.gpu, cost.host);
    }
    out.passes[static_cast<std::size_t>(pass)] = {cost_of(cost), memory_in(block, pass)};
  }
  return out;
}

// The embedding, the head, and of each kind of layer a plain one, and the recomputed one where the
// layout has any.
Program BlockTable::lower_blocks() const {
  Program out;
  out.blocks = {lower_embedding(scenario_), lower_head(scenario_)};
  const RecomputeMode mode = scenario_.layout.recompute.mode;
  constexpr auto kWhole = BackwardForm::kWhole;
  for (const LayerKind kind : layer_kinds(scenario_)) {
    out.blocks.push_back(lower_decoder_layer(scenario_, RecomputeMode::kNone, kWhole, kind));
    if (mode == RecomputeMode::kNone) continue;
    out.blocks.push_back(lower_decoder_layer(scenario_, mode, kWhole, kind));
  }
  return out;
}

BlockSet BlockTable::make(const std::vector<AxisGroup>& groups, const std::vector<PlaceId>& places,
                          const Pricing& pricing) const {
  const Program lowered = lower_blocks();
  BlockCosts costs(scenario_, pricing.kernels, pricing.collectives);
  std::vector<GroupPlacement> placements;
  for (const AxisGroup group : groups) {
    placements.push_back({group, groups_.members(places[placements.size()])});
  }
  costs.use_groups(std::move(placements));
  const std::vector<Block>& blocks = lowered.blocks;
  BlockSet out{facts_of(blocks[0], costs), facts_of(blocks[1], costs), {}};
  const std::size_t forms = scenario_.layout.recompute.mode == RecomputeMode::kNone ? 1 : 2;
  for (std::size_t i = 2; i < blocks.size(); i += forms) {
    const BlockFacts plain = facts_of(blocks[i], costs);
    const BlockFacts recomputed = forms > 1 ? facts_of(blocks[i + 1], costs) : plain;
    out.layers.push_back({plain, recomputed, least_of(plain, recomputed)});
  }
  return out;
}

const std::vector<AxisGroup>& BlockTable::groups(const LayoutCode& code) {
  return known_groups_.get(code_of_blocks(code), [&] { return groups_in_blocks(lower_blocks()); });
}

const BlockSet& BlockTable::blocks(const LayoutCode& code, const std::vector<PlaceId>& places,
                                   const Pricing& pricing) {
  LayoutCode key = code_of_blocks(code);
  const auto number = static_cast<std::uint32_t>(arrangements_.size());
  key[Field::kOther] = arrangements_.try_emplace(places, number).first->second;
  return known_.get(key, [&] { return make(groups(code), places, pricing); });
}

}  // namespace stepcast
