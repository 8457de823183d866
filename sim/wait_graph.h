// SPDX-License-Identifier: Apache-2.0
// Who waits for whom, in the shape the engine walks: each waiting *node* counts what it still waits
// for, and each task lists the nodes that its start and its end bring nearer.
//
// A member that holds resources is a node of its own, because its posting has an effect. Every
// other member is merged into its task: the task may start when the sum of all its waits is zero.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/workload.h"

namespace stepcast::sim {

// Nodes 0 .. tasks-1 are tasks; tasks + i is the member `holders[i]`.
struct Graph {
  std::vector<std::int32_t> waits;           // by node: events that it waits for at the beginning
  std::vector<std::int32_t> end_begin;       // by task, one more at the end: into end_nodes
  std::vector<std::int32_t> end_nodes;       // dependencies, and the next member on each stream
  std::vector<std::int32_t> start_begin;     // by task, one more at the end: into start_nodes
  std::vector<std::int32_t> start_nodes;     // what the task issues
  std::vector<std::int32_t> holders;         // members with holds
  std::vector<std::uint8_t> is_constrained;  // by task: has a floor or holds
};

Graph make_graph(const Workload& workload);

}  // namespace stepcast::sim
