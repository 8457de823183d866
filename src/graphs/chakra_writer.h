// SPDX-License-Identifier: Apache-2.0
// Writes a graph as MLCommons Chakra execution traces that ASTRA-sim runs.
#pragma once

#include <cstdint>
#include <string>

#include "graphs/execution_graph.h"

namespace stepcast {

// The trace of one rank, as its file PREFIX.RANK.et holds it. Durations are whole microseconds
// there; what rounding takes from one node of a rank and lane, it gives to the next. A group of all
// ranks goes without a name, another one by its number in graphs/graph_groups.h.
std::string chakra_text(const ExecutionGraph& graph, std::int32_t rank);

}  // namespace stepcast
