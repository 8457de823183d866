// SPDX-License-Identifier: Apache-2.0
// Which groups of ranks communicate inside the blocks of a program, and what they send.
#pragma once

#include <utility>
#include <vector>

#include "program/program.h"

namespace stepcast {

// Ascending, each once.
std::vector<AxisGroup> groups_in_blocks(const Program& program);

// The same, once for each stream that their collectives run on.
std::vector<std::pair<AxisGroup, BlockStream>> streams_of_groups(const Program& program);

// The same with what they send, each message once.
struct GroupMessage {
  AxisGroup group;
  Message message;
  auto operator<=>(const GroupMessage&) const = default;
};
std::vector<GroupMessage> messages_in_blocks(const Program& program);

}  // namespace stepcast
