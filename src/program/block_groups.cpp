// SPDX-License-Identifier: Apache-2.0
#include "program/block_groups.h"

#include <set>
#include <variant>

#include "program/walk.h"

namespace stepcast {

namespace {

template <class Counts>
std::vector<GroupMessage> messages_of(const Program& program, Counts counts) {
  std::set<GroupMessage> found;
  for_each_operation(program, [&](const Operation& operation) {
    const auto* collective = std::get_if<Collective>(&operation.work);
    if (collective == nullptr || !counts(operation)) return;
    found.insert({collective->group, message_of(*collective)});
  });
  return {found.begin(), found.end()};
}

}  // namespace

std::vector<GroupMessage> messages_in_blocks(const Program& program) {
  return messages_of(program, [](const Operation&) { return true; });
}

std::vector<GroupMessage> messages_in_passes(const Program& program) {
  return messages_of(
      program, [](const Operation& operation) { return operation.phase != Phase::kOptimizer; });
}

std::vector<AxisGroup> groups_in_blocks(const Program& program) {
  std::set<AxisGroup> found;
  for (const GroupMessage& one : messages_in_blocks(program)) found.insert(one.group);
  return {found.begin(), found.end()};
}

std::vector<std::pair<AxisGroup, BlockStream>> streams_of_groups(const Program& program) {
  std::set<std::pair<AxisGroup, BlockStream>> found;
  for_each_operation(program, [&](const Operation& operation) {
    const auto* collective = std::get_if<Collective>(&operation.work);
    if (collective != nullptr) found.insert({collective->group, operation.stream});
  });
  return {found.begin(), found.end()};
}

}  // namespace stepcast
