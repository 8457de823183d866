// SPDX-License-Identifier: Apache-2.0
#include "execute/shards.h"

#include <algorithm>

#include "comm/communicator.h"

namespace stepcast {

std::vector<ElementRange> pieces_of(const CollectiveCall& call) {
  std::vector<ElementRange> out;
  for (int i = 0; i < call.pieces; ++i) {
    const Slice part = slice_of(call.elements.size(), call.pieces, i);
    out.push_back({call.elements.begin + part.begin, call.elements.begin + part.end});
  }
  return out;
}

bool scatters_gradients(const CollectiveCall& call) {
  return call.purpose == Purpose::kGradients && call.message.kind == CollectiveKind::kReduceScatter;
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
    const auto* call = instruction.as<CollectiveCall>();
    // A copy of the states may be one rank's.
    if (call == nullptr || !scatters_gradients(*call) || !is_cut(call->group.whole())) continue;
    const auto members = static_cast<int>(grid.group_size(call->group));
    for (const ElementRange& piece : pieces_of(*call)) {
      const Slice own = slice_of(piece.size(), members, grid.place_in(call->group, rank));
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
