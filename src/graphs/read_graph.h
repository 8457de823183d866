// SPDX-License-Identifier: Apache-2.0
// Reads the graph that files name, in whichever form they are.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"
#include "graphs/execution_graph.h"

namespace stepcast {

struct GraphSource {
  std::vector<std::string> words;  // one schedule in GOAL, or a set of traces (graphs/rank_files.h)
  std::string groups;              // ASTRA-sim's file of groups; empty: none
  // ChakraRules has these, too.
  bool ignore_missing = false;
  bool data_alone = false;
  std::vector<std::int64_t> dimensions = {};
};

Result<ExecutionGraph> read_graph(const GraphSource& source);

}  // namespace stepcast
