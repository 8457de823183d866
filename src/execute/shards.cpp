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
  return call.purpose == Purpose::kGradients && call.kind == CollectiveKind::kReduceScatter;
}

ElementRange common(ElementRange a, ElementRange b) {
  const ElementRange out{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return out.begin < out.end ? out : ElementRange{out.begin, out.begin};
}

Shards::Shards(const Role& role, bool sharded, int ranks, int rank) {
  std::vector<ElementRange> ranges;
  if (sharded && ranks > 1) {
    for (const Instruction& instruction : role.instructions) {
      const auto* call = instruction.as<CollectiveCall>();
      if (call == nullptr || !scatters_gradients(*call)) continue;
      for (const ElementRange& piece : pieces_of(*call)) {
        const Slice own = slice_of(piece.size(), ranks, rank);
        ranges.push_back({piece.begin + own.begin, piece.begin + own.end});
      }
    }
    std::sort(ranges.begin(), ranges.end(),
              [](ElementRange a, ElementRange b) { return a.begin < b.begin; });
    ranges.erase(std::unique(ranges.begin(), ranges.end(),
                             [](ElementRange a, ElementRange b) { return a.begin == b.begin; }),
                 ranges.end());
  } else {
    ranges.push_back({0, role.parameters});
  }
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
