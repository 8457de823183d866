// SPDX-License-Identifier: Apache-2.0
#include "program/flat_stretches.h"

#include <algorithm>
#include <set>

#include "core/assert.h"
#include "program/walk.h"

namespace stepcast {
namespace {

std::int64_t elements_of(const Block& block, AxisGroup group) {
  const auto found = std::ranges::find(block.by_group, group, &GroupElements::group);
  return found == block.by_group.end() ? 0 : found->elements;
}

FlatStretch lay_out(const Program& program, const Role& role, AxisGroup group, std::int64_t begin,
                    bool root_first) {
  FlatStretch out{group, {begin, begin}, {}};
  for (const Chunk& chunk : role.chunks) {
    std::vector<std::int64_t>& offsets = out.offsets.emplace_back(chunk.blocks.size());
    const auto place = [&](std::size_t i) {
      offsets[i] = out.range.end;
      out.range.end += elements_of(program.block(chunk.blocks[i]), group);
    };
    const std::size_t count = chunk.blocks.size();
    if (root_first) {
      place(0);
      place(count - 1);
      for (std::size_t i = 1; i + 1 < count; ++i) place(i);
    } else {
      for (std::size_t i = 0; i < count; ++i) place(i);
    }
  }
  return out;
}

}  // namespace

void count_in_group(Block& block, AxisGroup group, std::int64_t elements) {
  if (elements == 0) return;
  auto found = std::ranges::lower_bound(block.by_group, group, {}, &GroupElements::group);
  if (found == block.by_group.end() || found->group != group) {
    found = block.by_group.insert(found, {group, 0});
  }
  found->elements += elements;
}

void place_parameters(const Program& program, bool root_first, Role& role) {
  std::set<AxisGroup> groups;
  for_each_block(program, role, [&](const Block& block) {
    for (const GroupElements& part : block.by_group) groups.insert(part.group);
  });
  role.stretches.clear();
  role.parameters = 0;
  for (const AxisGroup group : groups) {
    role.stretches.push_back(lay_out(program, role, group, role.parameters, root_first));
    role.parameters = role.stretches.back().range.end;
  }
}

ElementRange weight_range(const Program& program, const Role& role, std::size_t chunk,
                          std::size_t block, std::size_t weight) {
  const std::vector<Parameter>& weights = program.block(role.chunks[chunk].blocks[block]).weights;
  const Parameter& own = weights[weight];
  const FlatStretch* stretch = role.stretch(own.replicas);
  const bool is_placed = own.storage == WeightStorage::kTrained && !own.borrowed;
  STEPCAST_ASSERT(stretch != nullptr && is_placed, "only trained weights have a place");
  std::int64_t begin = stretch->offsets[chunk][block];
  for (std::size_t w = 0; w < weight; ++w) {
    const bool trained = weights[w].storage == WeightStorage::kTrained && !weights[w].borrowed;
    if (trained && weights[w].replicas == own.replicas) begin += weights[w].elements();
  }
  return {begin, begin + own.elements()};
}

}  // namespace stepcast
