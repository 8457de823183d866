// SPDX-License-Identifier: Apache-2.0
#include "program/sharded_units.h"

#include <algorithm>
#include <functional>

#include "layout/scenario.h"
#include "program/buckets.h"
#include "program/fp8_weights.h"

namespace stepcast {
namespace {

// The matrices of a block as the model's code has them: packed query, key and value are one in the
// GPT form, and apart in the Llama form, as gate and up are. Biases and norms stay whole below
// DeepSpeed's persistence threshold of 1e5 elements (stage3_param_persistence_threshold).
std::int32_t matrices(const RoleBuilder& builder, const Block& block, AxisGroup group) {
  std::int64_t count = 0;
  for (const Parameter& weight : block.weights) {
    if (weight.columns == 1 || weight.borrowed || weight.replicas != group) continue;
    const std::int64_t parts = std::ranges::count_if(weight.parts, std::identity());
    const bool apart = builder.scenario().model.mlp == Mlp::kSwiglu && parts > 1;
    count += weight.copies * (apart ? parts : 1);
  }
  return static_cast<std::int32_t>(count);
}

Unit unit_of(const RoleBuilder& builder, std::int32_t chunk, std::int32_t first,
             std::int32_t last) {
  Unit unit{first, {}};
  const DataType type = builder.scenario().training.wide();
  const ElementRange alone = shared_table(builder);
  const auto count = [&](AxisGroup group) {
    const std::int32_t more =
        first == last ? 0 : matrices(builder, builder.block(chunk, last), group);
    return matrices(builder, builder.block(chunk, first), group) + more;
  };
  for (const FlatStretch& stretch : builder.role().stretches) {
    const ElementRange whole{builder.range(chunk, first, stretch.group).begin,
                             builder.range(chunk, last, stretch.group).end};
    for (const ElementRange& range : cut_around(whole, alone)) {
      unit.parts.push_back({range, range.size() * size_of(type) - saved_by_fp8(builder, range),
                            count(stretch.group)});
    }
  }
  if (unit.parts.empty()) unit.parts.push_back({{}, 0, count(AxisGroup::kData)});  // all frozen
  unit.parts.front().bytes += builder.frozen(chunk, first).bytes(type);
  if (last != first) unit.parts.front().bytes += builder.frozen(chunk, last).bytes(type);
  return unit;
}

}  // namespace

std::int64_t Unit::elements() const {
  std::int64_t sum = 0;
  for (const UnitPart& part : parts) sum += part.range.size();
  return sum;
}

ByteCount Unit::bytes() const {
  ByteCount sum = 0;
  for (const UnitPart& part : parts) sum += part.bytes;
  return sum;
}

bool has_root(const Layout& layout) { return layout.pp == 1; }

bool sums_wide_gradients(const Scenario& scenario) {
  const FrameworkRules& rules = scenario.rules;
  return rules.sums_wide_gradients && (scenario.training.no_sync || rules.keeps_units);
}

std::vector<ChunkUnits> units_of(const RoleBuilder& builder) {
  std::vector<ChunkUnits> out;
  for (std::int32_t c = 0; c < static_cast<std::int32_t>(builder.chunks()); ++c) {
    ChunkUnits& chunk = out.emplace_back();
    const std::int32_t blocks = builder.blocks(c);
    const bool root = has_root(builder.scenario().layout);
    for (std::int32_t b = 0; b < blocks; ++b) {
      const bool ends = root && (b == 0 || b + 1 == blocks);
      if (ends && b > 0) {
        chunk.of_block.push_back(0);
        continue;
      }
      chunk.of_block.push_back(chunk.units.size());
      chunk.units.push_back(unit_of(builder, c, b, ends ? blocks - 1 : b));
    }
  }
  return out;
}

}  // namespace stepcast
