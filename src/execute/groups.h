// SPDX-License-Identifier: Apache-2.0
// The communicators of a rank: one per group and stream, because what different streams start
// keeps no common order, and one for each direction between two stages.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "comm/device_communicator.h"
#include "layout/rank_grid.h"
#include "program/rank_stream.h"

namespace stepcast {

struct Program;

// Two stages that exchange messages of one kind.
struct LinkKey {
  std::int32_t leaves;  // the stage that activations leave
  bool activations;     // they move, or their gradients do
  bool up;              // of chunks on the way up
  auto operator<=>(const LinkKey&) const = default;
};

class Groups {
 public:
  // Called by all ranks of `world`. Null: traffic is left out, every group is alone.
  Groups(const Program& program, const RankGrid& grid, DeviceCommunicator* world, RankId rank);

  // Null where the rank is alone.
  DeviceCommunicator* find(AxisGroup group, Stream stream) const;
  DeviceCommunicator* find_any(AxisGroup group) const;  // of whichever stream
  // A rank as a member of a group whose collectives run inside blocks; `communicator` is null
  // where the rank is alone or traffic is left out.
  struct Member {
    DeviceCommunicator* communicator = nullptr;
    int size = 1, place = 0;
  };
  Member member(AxisGroup group, Stream stream) const;
  // Place of this rank along an axis.
  std::int32_t coordinate(Axis axis) const { return grid_.coordinate(axis, rank_); }
  // Places of the group's members along an axis, in the group's order.
  std::vector<std::int32_t> coordinates(AxisGroup group, Axis axis) const;
  // Leads to or from a stage of this rank's pipeline; null if traffic is left out.
  struct Link {
    DeviceCommunicator* group = nullptr;
    int peer = 0;
  };
  Link link(std::int32_t stage, Stream stream) const;

 private:
  void make_links(const Program& program, const RankGrid& grid, DeviceCommunicator& world,
                  RankId rank);

  const RankGrid& grid_;
  RankId rank_;
  std::int32_t stage_ = 0, stages_ = 1;
  std::map<std::pair<AxisGroup, Stream>, std::unique_ptr<DeviceCommunicator>> groups_;
  std::map<LinkKey, std::unique_ptr<DeviceCommunicator>> links_;
};

}  // namespace stepcast
