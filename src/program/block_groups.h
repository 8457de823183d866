// SPDX-License-Identifier: Apache-2.0
// Which groups of ranks communicate inside the blocks of a program, and what they send.
#pragma once

#include <utility>
#include <vector>

#include "layout/axis_group.h"
#include "operation/block_stream.h"
#include "operation/message.h"

namespace stepcast {

struct Program;

// Ascending, each once.
std::vector<AxisGroup> groups_in_blocks(const Program& program);

// Lists each group once for every stream that its collectives run on.
std::vector<std::pair<AxisGroup, BlockStream>> streams_of_groups(const Program& program);

// A message that a group's collectives send; messages_in_blocks() lists each once.
struct GroupMessage {
  AxisGroup group;
  Message message;
  auto operator<=>(const GroupMessage&) const = default;
};
std::vector<GroupMessage> messages_in_blocks(const Program& program);
// Lists messages of forward and backward passes alone.
std::vector<GroupMessage> messages_in_passes(const Program& program);

}  // namespace stepcast
