// SPDX-License-Identifier: Apache-2.0
// A graph as a workload of the engine. Tasks are added in the order in which nodes would begin if
// nothing shared a link: then the streams of all ranks follow one order of the whole graph, and
// none can wait for another in a circle that the graph itself does not have.
#pragma once

#include <cstdint>
#include <vector>

#include "core/result.h"
#include "graphs/execution_graph.h"
#include "replay/graph_meetings.h"
#include "replay/graph_network.h"
#include "replay/graph_replay.h"
#include "sim/workload.h"

namespace stepcast {

struct GraphWorkload {
  sim::Workload workload;
  // By node: the task that is its work, and the one that dependents wait for. Invalid: it takes no
  // time, or ends with what it depends on.
  std::vector<sim::TaskId> work_of, end_of;
  std::vector<std::int32_t> previous;  // by node: the one before it on its stream, or kNowhere
  std::vector<Seconds> alone;          // by meeting: without any other traffic
  std::int64_t without_work = 0;       // GraphReplay::without_work
};

// Errors: nodes that wait for each other, times that nodes do not state.
Result<GraphWorkload> build_workload(const ExecutionGraph& graph, const GraphMeetings& meetings,
                                     GraphNetwork& network, const ReplayRules& rules);

}  // namespace stepcast
