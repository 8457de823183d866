// SPDX-License-Identifier: Apache-2.0
#include "execute/groups.h"

#include <set>
#include <vector>

namespace stepcast {

Groups::Groups(const Program& program, const RankGrid& grid, Communicator* world, RankId rank)
    : world_(world) {
  if (world == nullptr) return;
  std::set<std::pair<GroupKind, Stream>> used{{GroupKind::kTensor, Stream::kCompute}};
  for (const Role& role : program.roles) {
    for (const Instruction& instruction : role.instructions) {
      if (instruction.kind == InstructionKind::kCollective) {
        used.insert({instruction.group, instruction.stream});
      }
    }
  }
  int tag = 0;
  for (const auto& key : used) {
    ++tag;
    if (grid.group_of(key.first, rank) < 0) continue;
    std::vector<int> members;
    for (const RankId member : grid.members(key.first, rank)) members.push_back(member.value);
    if (members.size() > 1) groups_[key] = world->group(members, tag);
  }
}

Communicator* Groups::find(GroupKind kind, Stream stream) const {
  const auto found = groups_.find({kind, stream});
  return found == groups_.end() ? nullptr : found->second.get();
}

}  // namespace stepcast
