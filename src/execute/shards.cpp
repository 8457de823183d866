// SPDX-License-Identifier: Apache-2.0
#include "execute/shards.h"

#include <algorithm>
#include <cmath>

#include "comm/communicator.h"
#include "core/assert.h"
#include "layout/axis_group.h"
#include "layout/rank_grid.h"
#include "operation/collective_kind.h"
#include "program/instruction.h"
#include "program/program.h"

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

namespace {

// Reductions that scatter deal elements out; where gradients are summed whole, gathers do.
bool deals_elements(const CollectiveCall& call, bool scatters) {
  const bool gathers = call.purpose == Purpose::kParameters && call.elements.size() > 0;
  return scatters ? scatters_gradients(call) : gathers;
}

}  // namespace

Shards::Shards(const Role& role, bool sharded, const RankGrid& grid, RankId rank) {
  std::vector<ElementRange> ranges;
  const auto is_cut = [&](AxisGroup group) { return sharded && grid.group_size(group) > 1; };
  for (const FlatStretch& stretch : role.stretches) {
    if (!is_cut(stretch.group)) ranges.push_back(stretch.range);
  }
  const bool scatters = std::ranges::any_of(role.instructions, [](const Instruction& what) {
    return what.is<CollectiveCall>() && scatters_gradients(*what.as<CollectiveCall>());
  });
  for (const Instruction& instruction : role.instructions) {
    const auto* call = instruction.as<CollectiveCall>();
    if (call == nullptr || !deals_elements(*call, scatters)) continue;
    if (!is_cut(call->group.whole())) continue;  // a copy of the states may be one rank's
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
  for (const ElementRange& range : ranges) add(range);
}

void Shards::add(ElementRange range) {
  pieces_.push_back({range, elements_});
  elements_ += range.size();
}

// Cut by the sums over pieces, so that the parts of small pieces add up to the fraction of all.
std::pair<Shards, Shards> Shards::split(double fraction) const {
  const auto until = [&](std::int64_t owned) {
    return static_cast<std::int64_t>(std::ceil(fraction * static_cast<double>(owned)));
  };
  std::pair<Shards, Shards> out;
  for (const auto& [range, offset] : pieces_) {
    const std::int64_t cut = range.begin + until(offset + range.size()) - until(offset);
    if (range.begin < cut) out.first.add({range.begin, cut});
    if (cut < range.end) out.second.add({cut, range.end});
  }
  return out;
}

std::int64_t Shards::offset_of(std::int64_t element) const {
  const auto next = std::ranges::upper_bound(
      pieces_, element, {}, [](const OwnedPiece& piece) { return piece.range.begin; });
  STEPCAST_ASSERT(next != pieces_.begin() && element < (next - 1)->range.end,
                  "the element is owned");
  return (next - 1)->offset + element - (next - 1)->range.begin;
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
