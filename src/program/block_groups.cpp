// SPDX-License-Identifier: Apache-2.0
#include "program/block_groups.h"

#include <set>
#include <variant>

namespace stepcast {

std::vector<GroupMessage> messages_in_blocks(const Program& program) {
  std::set<GroupMessage> found;
  for (const Block& block : program.blocks) {
    for (const BlockPass& pass : block.passes) {
      for (const Operation& operation : pass.operations) {
        const auto* collective = std::get_if<Collective>(&operation.work);
        if (collective != nullptr) found.insert({collective->group, message_of(*collective)});
      }
    }
  }
  return {found.begin(), found.end()};
}

std::vector<AxisGroup> groups_in_blocks(const Program& program) {
  std::set<AxisGroup> found;
  for (const GroupMessage& one : messages_in_blocks(program)) found.insert(one.group);
  return {found.begin(), found.end()};
}

}  // namespace stepcast
