// SPDX-License-Identifier: Apache-2.0
#include "plan/block_table.h"

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

}  // namespace

PassCost cost_of(const RunCost& cost) {
  return {cost.gpu.value(), cost.floor.value(), cost.host.value()};
}

BlockFacts BlockTable::facts_of(const Block& block, const BlockCosts& costs) const {
  const auto cost_in = [&](Pass pass) { return cost_of(costs.price(operations_of(block, pass))); };
  return {cost_in(Pass::kForward), cost_in(Pass::kBackward), memory_in(block, Pass::kForward),
          memory_in(block, Pass::kBackward)};
}

BlockSet BlockTable::make(PlaceId tensor_group, const Pricing& pricing) {
  BlockCosts costs(scenario_, pricing.kernels, pricing.collectives);
  costs.use_groups({{AxisGroup::kTensor, groups_.members(tensor_group)}});
  BlockSet out;
  out.embedding = facts_of(lower_embedding(scenario_), costs);
  out.head = facts_of(lower_head(scenario_), costs);
  out.plain = facts_of(lower_decoder_layer(scenario_, RecomputeMode::kNone), costs);
  const RecomputeMode mode = scenario_.layout.recompute.mode;
  out.recomputed = mode == RecomputeMode::kNone
                       ? out.plain
                       : facts_of(lower_decoder_layer(scenario_, mode), costs);
  return out;
}

const BlockSet& BlockTable::blocks(const LayoutCode& code, PlaceId tensor_group,
                                   const Pricing& pricing) {
  LayoutCode key =
      code.without({Field::kDp, Field::kSchedule, Field::kVirtualStages, Field::kRecomputeLayers,
                    Field::kRecomputeEvery, Field::kOrder, Field::kOverlapGradReduce,
                    Field::kOverlapParamGather, Field::kOverlapPp});
  // The head has a table of its own or not; nothing else of a block knows of stages.
  key[Field::kPp] = code.of(Field::kPp) > 1;
  // ZeRO-1 and 2 shard what is outside the blocks.
  key[Field::kZero] = code.of(Field::kZero) == 3;
  key[Field::kOther] = static_cast<std::uint32_t>(tensor_group.value);
  return known_.get(key, [&] { return make(tensor_group, pricing); });
}

}  // namespace stepcast
