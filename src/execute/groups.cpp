// SPDX-License-Identifier: Apache-2.0
#include "execute/groups.h"

#include <set>

#include "cluster/topology.h"
#include "core/assert.h"
#include "program/block_groups.h"
#include "program/instruction.h"
#include "program/program.h"

namespace stepcast {
namespace {

// A transfer on `stream` joins two stages: `leaves` is the one that activations leave.
LinkKey key_of(std::int32_t own, std::int32_t peer, Stream stream) {
  const TransferStream moved = *transfers_of(stream);
  return {moved.sends == moved.activations ? own : peer, moved.activations, moved.up};
}

}  // namespace

Groups::Groups(const Program& program, const RankGrid& grid, DeviceCommunicator* world, RankId rank)
    : grid_(grid),
      rank_(rank),
      stage_(grid.point(rank).pp),
      stages_(static_cast<std::int32_t>(grid.group_size(AxisGroup::kPipeline))) {
  if (world == nullptr) return;
  std::set<std::pair<AxisGroup, Stream>> used;
  for (const auto& [group, stream] : streams_of_groups(program)) {
    used.insert({group, stream_of(stream)});
  }
  for (const Role& role : program.roles) {
    for (const Instruction& instruction : role.instructions) {
      const auto* call = instruction.as<CollectiveCall>();
      if (call != nullptr) used.insert({call->group, instruction.stream});
    }
  }
  for (const auto& key : used) {
    if (grid.group_size(key.first) == 1) continue;
    if (auto group = world->split(grid.group_of(key.first, rank))) {
      groups_[key] = std::move(group);
    }
  }
  make_links(program, grid, *world, rank);
}

void Groups::make_links(const Program& program, const RankGrid& grid, DeviceCommunicator& world,
                        RankId rank) {
  std::set<LinkKey> used;
  for (const Role& role : program.roles) {
    for (const Instruction& instruction : role.instructions) {
      const auto* send = instruction.as<Send>();
      if (send == nullptr) continue;
      used.insert(key_of(role.stage, send->peer, instruction.stream));
    }
  }
  for (const LinkKey& key : used) {
    const std::int32_t step = key.up ? stages_ - 1 : 1;
    const bool member = stage_ == key.leaves || stage_ == (key.leaves + step) % stages_;
    const int color = member ? grid.group_of(AxisGroup::kPipeline, rank) : -1;
    if (auto group = world.split(color)) links_[key] = std::move(group);
  }
}

DeviceCommunicator* Groups::find(AxisGroup group, Stream stream) const {
  const auto found = groups_.find({group, stream});
  return found == groups_.end() ? nullptr : found->second.get();
}

DeviceCommunicator* Groups::find_any(AxisGroup group) const {
  for (const auto& [key, communicator] : groups_) {
    if (key.first == group) return communicator.get();
  }
  return nullptr;
}

Groups::Member Groups::member(AxisGroup group, Stream stream) const {
  return {find(group, stream), static_cast<int>(grid_.group_size(group)),
          grid_.place_in(group, rank_)};
}

std::vector<std::int32_t> Groups::coordinates(AxisGroup group, Axis axis) const {
  std::vector<std::int32_t> out;
  for (const RankId member : grid_.members(group, rank_)) {
    out.push_back(grid_.coordinate(axis, member));
  }
  return out;
}

Groups::Link Groups::link(std::int32_t stage, Stream stream) const {
  const auto found = links_.find(key_of(stage_, stage, stream));
  if (found == links_.end()) return {};
  DeviceCommunicator& group = *found->second;
  STEPCAST_ASSERT(group.size() == 2, "a link joins two stages");
  return {&group, 1 - group.rank()};
}

}  // namespace stepcast
