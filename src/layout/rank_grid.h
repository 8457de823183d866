// SPDX-License-Identifier: Apache-2.0
// Ranks as points of a grid tp x cp x dp x pp in the framework's order (default tp-cp-ep-dp-pp, the
// first dimension fastest), the same ranks as points of the experts' grid inside each stage, and
// the process groups that follow (layout/axis_group.h).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/id.h"
#include "layout/axis_group.h"

namespace stepcast {

struct Layout;

struct GridPoint {
  std::int32_t tp = 0;
  std::int32_t cp = 0;
  std::int32_t dp = 0;
  std::int32_t pp = 0;
};

class RankGrid {
 public:
  explicit RankGrid(const Layout& layout);

  std::int64_t size() const { return size_; }
  GridPoint point(RankId rank) const;
  RankId rank(GridPoint point) const;
  // Place of the rank along an axis, an expert's one included.
  std::int32_t coordinate(Axis axis, RankId rank) const;

  std::int64_t group_size(AxisGroup group) const;
  std::int64_t group_count(AxisGroup group) const;
  // Dense index of the rank's group, counting up with the groups' lowest members (groups of experts
  // stage by stage). A rank of a middle stage is in no embedding group: -1, and no members.
  std::int32_t group_of(AxisGroup group, RankId rank) const;
  std::vector<RankId> members(AxisGroup group, RankId rank) const;  // in group order, own included
  // Ranks from the first member of rank 0's group to the last, both included.
  std::int64_t reach(AxisGroup group) const;
  // The rank's place among the members of its group, from 0.
  std::int32_t place_in(AxisGroup group, RankId rank) const;

 private:
  // One grid as a number in mixed radix, its fastest axis first.
  struct Digit {
    Axis axis;
    std::int64_t extent, stride;
  };
  struct Numbering {
    std::array<Digit, kAxisCount> digits;
    std::size_t count = 0;
    AxisGroup axes;
    void add(Axis axis, std::int64_t extent);
    std::int64_t size() const;
  };

  std::int64_t inner_size(AxisGroup group) const;
  // Every `step`th member of the rank's group, from place `first` on.
  std::vector<RankId> members_at(AxisGroup group, RankId rank, std::int64_t first,
                                 std::int64_t step, std::int64_t count) const;
  // Its groups join stage s and stage pp-1-s.
  bool joins_mirrored(AxisGroup group) const;
  // The rank's place along the axes of a group inside its own stage.
  std::int32_t place_along(AxisGroup axes, RankId rank) const;
  const Numbering& numbering(AxisGroup group) const;
  // A rank as a number of the experts' grid, in which stages come last, and back.
  std::int64_t expert_number(std::int64_t rank) const;
  std::int64_t rank_of_expert_number(std::int64_t number) const;
  std::int64_t number(const Numbering& of, RankId rank) const;

  std::array<std::int64_t, kAxisCount> extent_{};             // by Axis
  std::int64_t shard_ = 1, expert_shard_ = 1, exchange_ = 1;  // inner_ranks() of three groups
  std::array<std::int64_t, kAxisCount> stride_{};             // dense axes and pp
  Numbering dense_, expert_;
  bool is_mirrored_ = false;
  std::int64_t size_ = 1;
};

}  // namespace stepcast
