// SPDX-License-Identifier: Apache-2.0
#include "program/walk.h"

#include <set>

namespace stepcast {

std::vector<BlockId> distinct_blocks(const Role& role) {
  std::set<BlockId> found;
  for (const Chunk& chunk : role.chunks) found.insert(chunk.blocks.begin(), chunk.blocks.end());
  return {found.begin(), found.end()};
}

}  // namespace stepcast
