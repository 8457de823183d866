// SPDX-License-Identifier: Apache-2.0
#include "layout/rank_grid.h"

#include <algorithm>

#include "core/assert.h"

namespace stepcast {
namespace {

enum Axis : std::size_t { kTp, kCp, kDp, kPp };
using Axes = std::array<bool, 4>;

std::size_t axis_of(std::string_view name) {
  if (name == "tp") return kTp;
  if (name == "cp") return kCp;
  if (name == "dp") return kDp;
  STEPCAST_ASSERT(name == "pp", "read_layout accepts tp, cp, ep, dp and pp only");
  return kPp;
}

// The axes along which a group extends.
Axes axes_of(GroupKind kind) {
  switch (kind) {
    case GroupKind::kTensor:
      return {true, false, false, false};
    case GroupKind::kContext:
      return {false, true, false, false};
    case GroupKind::kData:
      return {false, true, true, false};
    case GroupKind::kPipeline:
    case GroupKind::kEmbedding:
      return {false, false, false, true};
    case GroupKind::kModel:
      return {true, false, false, true};
    case GroupKind::kWorld:
      return {true, true, true, true};
  }
  return {};
}

}  // namespace

const char* name_of(GroupKind kind) {
  switch (kind) {
    case GroupKind::kTensor:
      return "tp";
    case GroupKind::kContext:
      return "cp";
    case GroupKind::kData:
      return "dp";
    case GroupKind::kPipeline:
      return "pp";
    case GroupKind::kEmbedding:
      return "embedding";
    case GroupKind::kModel:
      return "model";
    case GroupKind::kWorld:
      return "world";
  }
  return "";
}

RankGrid::RankGrid(const Layout& layout) : extent_{layout.tp, layout.cp, layout.dp, layout.pp} {
  std::string_view order = layout.order;
  while (!order.empty()) {
    const std::size_t length = std::min(order.find('-'), order.size());
    const std::string_view name = order.substr(0, length);
    order.remove_prefix(std::min(length + 1, order.size()));
    if (name == "ep") continue;  // experts regroup the ranks of a stage, they add none
    const std::size_t axis = axis_of(name);
    STEPCAST_ASSERT(stride_[axis] == 0, "an axis stands once in the order");
    stride_[axis] = size_;
    size_ *= extent_[axis];
  }
  STEPCAST_ASSERT(std::ranges::count(stride_, 0) == 0, "the order names every axis");
}

GridPoint RankGrid::point(RankId rank) const {
  const auto at = [&](std::size_t axis) {
    return static_cast<std::int32_t>(rank.value / stride_[axis] % extent_[axis]);
  };
  return {at(kTp), at(kCp), at(kDp), at(kPp)};
}

RankId RankGrid::rank(GridPoint point) const {
  return RankId(static_cast<std::int32_t>(point.tp * stride_[kTp] + point.cp * stride_[kCp] +
                                          point.dp * stride_[kDp] + point.pp * stride_[kPp]));
}

std::int64_t RankGrid::group_size(GroupKind kind) const {
  if (kind == GroupKind::kEmbedding) return std::min<std::int64_t>(2, extent_[kPp]);
  const Axes axes = axes_of(kind);
  std::int64_t size = 1;
  for (std::size_t axis = 0; axis < 4; ++axis) size *= axes[axis] ? extent_[axis] : 1;
  return size;
}

std::int64_t RankGrid::group_count(GroupKind kind) const {
  const GroupKind whole = kind == GroupKind::kEmbedding ? GroupKind::kPipeline : kind;
  return size_ / group_size(whole);
}

std::int32_t RankGrid::group_of(GroupKind kind, RankId rank) const {
  const std::int32_t stage = point(rank).pp;
  if (kind == GroupKind::kEmbedding && stage != 0 && stage + 1 != extent_[kPp]) return -1;
  const Axes axes = axes_of(kind);
  // Strike the group's digits out of the rank: groups count up with their lowest member.
  std::int64_t index = 0;
  std::int64_t place = 1;
  for (std::int64_t stride = 1; stride < size_;) {
    // Axes of extent 1 share a stride with a longer one and add nothing.
    std::size_t axis = 0;
    while (stride_[axis] != stride || extent_[axis] == 1) ++axis;
    if (!axes[axis]) {
      index += rank.value / stride % extent_[axis] * place;
      place *= extent_[axis];
    }
    stride *= extent_[axis];
  }
  return static_cast<std::int32_t>(index);
}

std::vector<RankId> RankGrid::members(GroupKind kind, RankId rank) const {
  std::vector<RankId> found;
  if (group_of(kind, rank) < 0) return found;
  const Axes axes = axes_of(kind);
  const GridPoint own = point(rank);
  const std::array<std::int32_t, 4> at = {own.tp, own.cp, own.dp, own.pp};
  found.push_back(rank);
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if (!axes[axis]) continue;
    const std::size_t line = found.size();
    const bool ends_only = kind == GroupKind::kEmbedding;
    for (std::int64_t step = 0; step < extent_[axis]; ++step) {
      if (step == at[axis] || (ends_only && step != 0 && step + 1 != extent_[axis])) continue;
      for (std::size_t i = 0; i < line; ++i) {
        const std::int64_t shift = (step - at[axis]) * stride_[axis];
        found.push_back(RankId(static_cast<std::int32_t>(found[i].value + shift)));
      }
    }
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace stepcast
