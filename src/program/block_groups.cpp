// SPDX-License-Identifier: Apache-2.0
#include "program/block_groups.h"

#include <set>
#include <variant>

namespace stepcast {

namespace {

// visit(const Operation&, const Collective&)
template <class Visit>
void for_each_collective(const Program& program, Visit&& visit) {
  for (const Block& block : program.blocks) {
    for (const BlockPass& pass : block.passes) {
      for (const Operation& operation : pass.operations) {
        const auto* collective = std::get_if<Collective>(&operation.work);
        if (collective != nullptr) visit(operation, *collective);
      }
    }
  }
}

}  // namespace

std::vector<GroupMessage> messages_in_blocks(const Program& program) {
  std::set<GroupMessage> found;
  for_each_collective(program, [&](const Operation&, const Collective& collective) {
    found.insert({collective.group, message_of(collective)});
  });
  return {found.begin(), found.end()};
}

std::vector<GroupMessage> largest_in_blocks(const Program& program) {
  std::vector<GroupMessage> out;
  for (const GroupMessage& one : messages_in_blocks(program)) {  // those of a kind by their size
    const bool is_larger = !out.empty() && out.back().group == one.group &&
                           out.back().message.kind == one.message.kind;
    if (is_larger) out.pop_back();
    out.push_back(one);
  }
  return out;
}

std::vector<AxisGroup> groups_in_blocks(const Program& program) {
  std::set<AxisGroup> found;
  for (const GroupMessage& one : messages_in_blocks(program)) found.insert(one.group);
  return {found.begin(), found.end()};
}

std::vector<std::pair<AxisGroup, BlockStream>> streams_of_groups(const Program& program) {
  std::set<std::pair<AxisGroup, BlockStream>> found;
  for_each_collective(program, [&](const Operation& operation, const Collective& collective) {
    found.insert({collective.group, operation.stream});
  });
  return {found.begin(), found.end()};
}

}  // namespace stepcast
