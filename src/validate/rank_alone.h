// SPDX-License-Identifier: Apache-2.0
// One rank of a larger layout that ran without the others: who it is, and what was left out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/quantity.h"
#include "layout/rank_grid.h"

namespace stepcast {

struct Program;

// The rank would have exchanged this in a step.
struct LeftOut {
  std::string what;  // "collectives among tp ranks", "messages between stages"
  std::int64_t calls = 0;
  ByteCount bytes = 0;  // of the messages, as the program states them
};

struct RankAlone {
  RankId rank;
  std::int64_t ranks = 1;  // of the layout
  GridPoint point;
  std::vector<LeftOut> left_out;  // in the order in which the rank first comes to them
};

RankAlone rank_alone(const Program& program, const RankGrid& grid, RankId rank);

}  // namespace stepcast
