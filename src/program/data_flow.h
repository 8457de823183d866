// SPDX-License-Identifier: Apache-2.0
// Who must have ended before whom, by what instructions do to data: their operands, the elements
// that they reduce, gather or copy, the activations that they hand on. Nothing here looks at waits,
// which are checked against it (program/check_causality.h).
//
// The order of a role's list is the order in which its data changes. An instruction must follow
// whoever wrote what it reads, and whoever read or wrote what it overwrites. A window, a message
// and what a pass saves are new memory each time, and overwrite nothing.
//
// Sums over tensor ranks, and of a table that two stages share, come behind the reduction over data
// ranks. Gradients that have left for the host by then are not followed through them: there the
// program has their time and no place for their data, and the executor refuses it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stepcast {

class RankGrid;
struct Program;
struct Role;

struct DataFlow {
  // By instruction: those on other streams that must have ended before it starts, at most one of a
  // stream. One of the step before has its place there, less the number of instructions.
  std::vector<std::vector<std::int32_t>> after;
  // A fault of the order of the list itself: gradients that are read before they are reduced, or
  // something that nobody writes.
  std::optional<std::string> fault;
};

DataFlow data_flow(const Program& program, const Role& role, const RankGrid& grid);

// Words for an instruction: "stage 1: reduce_gradients, number 17".
std::string describe(const Role& role, std::int32_t instruction);

}  // namespace stepcast
