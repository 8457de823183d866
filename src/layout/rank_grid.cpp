// SPDX-License-Identifier: Apache-2.0
#include "layout/rank_grid.h"

#include <algorithm>

#include "core/assert.h"
#include "layout/layout.h"

namespace stepcast {
namespace {

constexpr std::size_t at(Axis axis) { return static_cast<std::size_t>(axis); }

// The axes of the dense grid, with a rank's place along each.
struct PlaceRow {
  Axis axis;
  std::int32_t GridPoint::*place;
};
constexpr std::array kPlaces{
    PlaceRow{Axis::kTp, &GridPoint::tp}, PlaceRow{Axis::kCp, &GridPoint::cp},
    PlaceRow{Axis::kDp, &GridPoint::dp}, PlaceRow{Axis::kPp, &GridPoint::pp}};

}  // namespace

void RankGrid::Numbering::add(Axis axis, std::int64_t extent) {
  digits[count] = {axis, extent, size()};
  axes = axes.with(axis);
  ++count;
}

std::int64_t RankGrid::Numbering::size() const {
  return count == 0 ? 1 : digits[count - 1].stride * digits[count - 1].extent;
}

RankGrid::RankGrid(const Layout& layout) {
  for (const AxisRow& row : all_axes()) extent_[at(row.axis)] = row.extent(layout);
  shard_ = inner_ranks(AxisGroup::kData, layout);
  expert_shard_ = inner_ranks(AxisGroup::kExpertData, layout);
  exchange_ = inner_ranks(AxisGroup::kContext, layout);
  is_mirrored_ = joins_mirrored_stages(AxisGroup::kData, layout);
  for_each_word(layout.order, [&](std::string_view word) {
    for (const AxisRow& row : all_axes()) {
      if (word != row.in_order) continue;
      (row.part == GridPart::kExpert ? expert_ : dense_).add(row.axis, extent_[at(row.axis)]);
    }
  });
  STEPCAST_ASSERT(dense_.count == kPlaces.size() && dense_.count + expert_.count == kAxisCount,
                  "the order names every axis once, and a point has a place along each dense one");
  expert_.add(Axis::kPp, extent_[at(Axis::kPp)]);
  for (std::size_t i = 0; i < dense_.count; ++i) {
    stride_[at(dense_.digits[i].axis)] = dense_.digits[i].stride;
  }
  size_ = dense_.size();
}

GridPoint RankGrid::point(RankId rank) const {
  GridPoint out;
  for (const auto& [axis, place] : kPlaces) {
    out.*place = static_cast<std::int32_t>(rank.value / stride_[at(axis)] % extent_[at(axis)]);
  }
  return out;
}

RankId RankGrid::rank(GridPoint point) const {
  std::int64_t rank = 0;
  for (const auto& [axis, place] : kPlaces) rank += point.*place * stride_[at(axis)];
  return RankId(static_cast<std::int32_t>(rank));
}

std::int32_t RankGrid::coordinate(Axis axis, RankId rank) const {
  return place_along(AxisGroup{axis}, rank);
}

std::int64_t RankGrid::inner_size(AxisGroup group) const {
  if (group.whole() == AxisGroup::kData) return shard_;
  if (group.whole() == AxisGroup::kExpertData) return expert_shard_;
  return group.whole() == AxisGroup::kContext ? exchange_ : group_size(group.whole());
}

bool RankGrid::joins_mirrored(AxisGroup group) const {
  return is_mirrored_ && (group == AxisGroup::kData || group == AxisGroup::kExpertData);
}

std::int64_t RankGrid::group_size(AxisGroup group) const {
  if (group.is_inner()) return inner_size(group);
  if (group.is_outer()) return group_size(group.whole()) / inner_size(group);
  if (group.ends_only()) return std::min<std::int64_t>(2, extent_[at(Axis::kPp)]);
  std::int64_t size = joins_mirrored(group) ? 2 : 1;
  for (std::size_t axis = 0; axis < kAxisCount; ++axis) {
    if (group.spans(static_cast<Axis>(axis))) size *= extent_[axis];
  }
  return size;
}

std::int64_t RankGrid::group_count(AxisGroup group) const {
  return size_ / group_size(group.ends_only() ? AxisGroup::kPipeline : group);
}

const RankGrid::Numbering& RankGrid::numbering(AxisGroup group) const {
  if (group.is_within(dense_.axes)) return dense_;
  STEPCAST_ASSERT(group.is_within(expert_.axes), "a group spans axes of one grid");
  return expert_;
}

// A cluster has many such parts, so that each must not list the whole group.
std::vector<RankId> RankGrid::members_at(AxisGroup group, RankId rank, std::int64_t first,
                                         std::int64_t step, std::int64_t count) const {
  std::vector<RankId> out;
  out.reserve(static_cast<std::size_t>(count));
  if (joins_mirrored(group)) {
    const std::vector<RankId> all = members(group, rank);
    for (std::int64_t i = 0; i < count; ++i) {
      out.push_back(all[static_cast<std::size_t>(first + i * step)]);
    }
    return out;
  }
  const Numbering& of = numbering(group);
  std::int64_t others = number(of, rank);  // the digits that the group does not span
  for (std::size_t d = 0; d < of.count; ++d) {
    const Digit& digit = of.digits[d];
    if (group.spans(digit.axis)) others -= others / digit.stride % digit.extent * digit.stride;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t member = others, place = first + i * step;
    for (std::size_t d = 0; d < of.count; ++d) {
      const Digit& digit = of.digits[d];
      if (!group.spans(digit.axis)) continue;
      member += place % digit.extent * digit.stride;
      place /= digit.extent;
    }
    if (&of == &expert_) member = rank_of_expert_number(member);
    out.emplace_back(static_cast<std::int32_t>(member));
  }
  return out;
}

// Inside a stage ranks keep their order: the stage's digit is struck out of the rank.
std::int64_t RankGrid::expert_number(std::int64_t rank) const {
  const std::int64_t stride = stride_[at(Axis::kPp)], stages = extent_[at(Axis::kPp)];
  const std::int64_t stage = rank / stride % stages;
  const std::int64_t in_stage = rank % stride + rank / (stride * stages) * stride;
  return in_stage + stage * (size_ / stages);
}

std::int64_t RankGrid::rank_of_expert_number(std::int64_t number) const {
  const std::int64_t stride = stride_[at(Axis::kPp)], stages = extent_[at(Axis::kPp)];
  const std::int64_t stage = number / (size_ / stages), in_stage = number % (size_ / stages);
  return in_stage % stride + stage * stride + in_stage / stride * stride * stages;
}

std::int64_t RankGrid::number(const Numbering& of, RankId rank) const {
  return &of == &expert_ ? expert_number(rank.value) : rank.value;
}

std::int32_t RankGrid::group_of(AxisGroup group, RankId rank) const {
  if (group.is_inner() || group.is_outer()) {
    // The parts of one whole group one after the other, the wholes in their order.
    const std::int64_t inner = inner_size(group), place = place_in(group.whole(), rank);
    const std::int64_t parts = group_size(group.whole()) / group_size(group);
    const std::int64_t part = group.is_inner() ? place / inner : place % inner;
    return static_cast<std::int32_t>(group_of(group.whole(), rank) * parts + part);
  }
  const std::int32_t stage = point(rank).pp;
  if (group.ends_only() && stage != 0 && stage + 1 != extent_[at(Axis::kPp)]) return -1;
  // Strike the group's digits out of the number: groups count up with their lowest member.
  const Numbering& of = numbering(group);
  const std::int64_t own = number(of, rank);
  std::int64_t index = 0, place = 1;
  for (std::size_t i = 0; i < of.count; ++i) {
    const Digit& digit = of.digits[i];
    if (group.spans(digit.axis)) continue;
    std::int64_t here = own / digit.stride % digit.extent, extent = digit.extent;
    if (digit.axis == Axis::kPp && joins_mirrored(group)) {
      here = std::min(here, extent - 1 - here);
      extent /= 2;
    }
    index += here * place;
    place *= extent;
  }
  return static_cast<std::int32_t>(index);
}

std::vector<RankId> RankGrid::members(AxisGroup group, RankId rank) const {
  if (group_of(group, rank) < 0) return {};
  if (group.is_inner() || group.is_outer()) {
    const std::int64_t inner = inner_size(group), place = place_in(group.whole(), rank);
    const std::int64_t first = group.is_inner() ? place / inner * inner : place % inner;
    return members_at(group.whole(), rank, first, group.is_inner() ? 1 : inner, group_size(group));
  }
  const Numbering& of = numbering(group);
  const std::int64_t own = number(of, rank);
  std::vector<std::int64_t> found{own};
  for (std::size_t i = 0; i < of.count; ++i) {
    const Digit& digit = of.digits[i];
    const bool mirrors = digit.axis == Axis::kPp && joins_mirrored(group);
    if (!group.spans(digit.axis) && !mirrors) continue;
    const std::int64_t here = own / digit.stride % digit.extent;
    const std::size_t line = found.size();
    for (std::int64_t step = 0; step < digit.extent; ++step) {
      const bool left_out = (group.ends_only() && step != 0 && step + 1 != digit.extent) ||
                            (mirrors && step + here + 1 != digit.extent);
      if (step == here || left_out) continue;
      for (std::size_t k = 0; k < line; ++k) {
        found.push_back(found[k] + (step - here) * digit.stride);
      }
    }
  }
  std::ranges::sort(found);
  std::vector<RankId> out;
  out.reserve(found.size());
  for (const std::int64_t one : found) {
    const std::int64_t member = &of == &expert_ ? rank_of_expert_number(one) : one;
    out.emplace_back(static_cast<std::int32_t>(member));
  }
  if (joins_mirrored(group)) std::ranges::sort(out);  // experts' numbers go stage by stage
  return out;
}

std::int64_t RankGrid::reach(AxisGroup group) const {
  if (joins_mirrored(group.whole())) return members(group, RankId(0)).back().value + 1;
  const std::int64_t all = group_size(group.whole());
  std::int64_t place = all - 1;  // of the last one in the whole group
  if (group.ends_only()) place = extent_[at(Axis::kPp)] - 1;
  if (group.is_inner()) place = inner_size(group) - 1;
  if (group.is_outer()) place = all - inner_size(group);
  const Numbering& of = numbering(group);
  std::int64_t last = 0;
  for (std::size_t i = 0; i < of.count; ++i) {
    const Digit& digit = of.digits[i];
    if (!group.spans(digit.axis)) continue;
    last += place % digit.extent * digit.stride;
    place /= digit.extent;
  }
  return (&of == &expert_ ? rank_of_expert_number(last) : last) + 1;
}

std::int32_t RankGrid::place_in(AxisGroup group, RankId rank) const {
  if (group.is_inner() || group.is_outer()) {
    const auto inner = static_cast<std::int32_t>(inner_size(group));
    const std::int32_t place = place_in(group.whole(), rank);
    return group.is_inner() ? place % inner : place / inner;
  }
  if (joins_mirrored(group)) {
    const std::vector<RankId> all = members(group, rank);
    return static_cast<std::int32_t>(std::ranges::find(all, rank) - all.begin());
  }
  if (group.ends_only()) return point(rank).pp == 0 ? 0 : 1;
  return place_along(group, rank);
}

std::int32_t RankGrid::place_along(AxisGroup axes, RankId rank) const {
  const Numbering& of = numbering(axes);
  const std::int64_t own = number(of, rank);
  std::int64_t index = 0, place = 1;
  for (std::size_t i = 0; i < of.count; ++i) {
    const Digit& digit = of.digits[i];
    if (!axes.spans(digit.axis)) continue;
    index += own / digit.stride % digit.extent * place;
    place *= digit.extent;
  }
  return static_cast<std::int32_t>(index);
}

}  // namespace stepcast
