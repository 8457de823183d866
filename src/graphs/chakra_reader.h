// SPDX-License-Identifier: Apache-2.0
// Reads MLCommons Chakra execution traces, one file per rank: protobuf, each message behind its
// length. A file is read piece by piece, and only one node of it lies in memory.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"
#include "graphs/execution_graph.h"
#include "graphs/graph_groups.h"

namespace stepcast {

struct ChakraRules {
  NamedRanks groups = {};       // that ASTRA-sim has in a file of its own; a trace may define more
  bool ignore_missing = false;  // a node that is not in the trace has ended for those that await it
  bool data_alone = false;      // control dependencies are not awaited
  std::vector<std::int64_t> dimensions = {};  // ranks in each of the network's; empty: it has none
};

// `files` by rank (graphs/rank_files.h). Errors name file and node: a file that is cut or no trace,
// nodes that wait for none, a collective without kind or group, a peer that does not exist.
Result<ExecutionGraph> read_chakra(const std::vector<std::string>& files, const ChakraRules& rules);

// The text of each rank is given.
Result<ExecutionGraph> chakra_of(const std::vector<std::string>& texts, const ChakraRules& rules);

}  // namespace stepcast
