// SPDX-License-Identifier: Apache-2.0
// Lists what has to be measured so that a scenario is priced from measurements alone: its kernels,
// its collectives and its messages between stages, each kind once. needed_grid.h adds shapes around
// them.
#pragma once

#include <cstdint>
#include <vector>

#include "layout/rank_grid.h"
#include "operation/message.h"
#include "operation/operation.h"
#include "program/block_kind.h"

namespace stepcast {

struct Program;
struct Scenario;

struct NeededKernel {
  Operation operation;  // not a collective
  // The first block of the program that has it: reads, writes and parameters are that block's.
  // Invalid, and the lists empty, of a shape that no program has.
  BlockId block;
};

struct NeededCollective {
  AxisGroup group = AxisGroup::kData;
  Message message;              // one piece
  bool on_compute = false;      // its rank computes nothing meanwhile
  std::vector<int> placement;   // node of each member, in group order
  std::int64_t concurrent = 1;  // groups of this kind, all at work at once

  std::int64_t ranks() const { return static_cast<std::int64_t>(placement.size()); }
  auto operator<=>(const NeededCollective&) const = default;
};

struct NeededSend {
  Message message;
  int from = 0, to = 0;         // nodes
  std::int64_t concurrent = 1;  // pairs of one stage and the next
  auto operator<=>(const NeededSend&) const = default;
};

struct NeededMeasurements {
  std::vector<NeededKernel> kernels;          // distinct by signature, in program order
  std::vector<NeededCollective> collectives;  // sorted; groups of two or more members
  std::vector<NeededSend> sends;              // sorted

  // Adds what is missing from the needs of another scenario or of a grid. Kernels that are added
  // have no block, because each program numbers its own.
  void add(const NeededMeasurements& more);
};

// Ranks sit on the cluster's devices in order.
NeededMeasurements needed(const Scenario& scenario, const Program& program, const RankGrid& grid);

}  // namespace stepcast
