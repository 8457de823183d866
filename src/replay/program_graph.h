// SPDX-License-Identifier: Apache-2.0
// One step of a scenario as a graph: every rank's program with the times that its forecast gives
// them, and each collective and message as a node of its own, for another simulator to price.
#pragma once

#include "core/result.h"
#include "graphs/execution_graph.h"

namespace stepcast {

struct DataFolders;
struct Scenario;

// Kernels between two collectives are one node, with their FLOPs and the bytes that memory moves in
// their time. Host work is left out, but for a pass that waits for its launches, which is then as
// long as they take, and what lies between two steps. Errors: a profile that cannot be read, more
// nodes than a graph may have.
Result<ExecutionGraph> program_graph(const Scenario& scenario, const DataFolders& folders);

}  // namespace stepcast
