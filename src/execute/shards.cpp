// SPDX-License-Identifier: Apache-2.0
#include "execute/shards.h"

#include <algorithm>

#include "comm/communicator.h"

namespace stepcast {

std::vector<ElementRange> pieces_of(const Instruction& instruction) {
  std::vector<ElementRange> out;
  for (int i = 0; i < instruction.pieces; ++i) {
    const Slice part = slice_of(instruction.elements.size(), instruction.pieces, i);
    out.push_back({instruction.elements.begin + part.begin, instruction.elements.begin + part.end});
  }
  return out;
}

ElementRange common(ElementRange a, ElementRange b) {
  const ElementRange out{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return out.begin < out.end ? out : ElementRange{out.begin, out.begin};
}

Shards::Shards(const Role& role, bool sharded, const RankGrid& grid, RankId rank) {
  std::vector<ElementRange> ranges;
  const auto is_cut = [&](AxisGroup group) { return sharded && grid.group_size(group) > 1; };
  for (const FlatStretch& stretch : role.stretches) {
    if (!is_cut(stretch.group)) ranges.push_back(stretch.range);
  }
  for (const Instruction& instruction : role.instructions) {
    const bool shards = instruction.kind == InstructionKind::kCollective &&
                        instruction.collective == CollectiveKind::kReduceScatter &&
                        instruction.elements.size() > 0 && is_cut(instruction.group);
    if (!shards) continue;
    for (const ElementRange& piece : pieces_of(instruction)) {
      const Slice own = slice_of(piece.size(), static_cast<int>(grid.group_size(instruction.group)),
                                 grid.place_in(instruction.group, rank));
      ranges.push_back({piece.begin + own.begin, piece.begin + own.end});
    }
  }
  std::ranges::sort(ranges, {}, &ElementRange::begin);
  ranges.erase(std::unique(ranges.begin(), ranges.end(),
                           [](ElementRange a, ElementRange b) { return a.begin == b.begin; }),
               ranges.end());
  for (const ElementRange& range : ranges) {
    pieces_.push_back({range, elements_});
    elements_ += range.size();
  }
}

std::vector<OwnedPiece> Shards::within(ElementRange range) const {
  std::vector<OwnedPiece> out;
  for (const OwnedPiece& piece : pieces_) {
    const ElementRange both = common(piece.range, range);
    if (both.size() > 0) out.push_back({both, piece.offset + both.begin - piece.range.begin});
  }
  return out;
}

}  // namespace stepcast
