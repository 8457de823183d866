// SPDX-License-Identifier: Apache-2.0
// Runs a graph over a network on the engine, and says where its time went.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/result.h"
#include "graphs/execution_graph.h"
#include "replay/graph_network.h"
#include "sim/time.h"

namespace stepcast {

// Times come from one of these.
enum class TimeSource {
  kFile,  // what each node states
  kModel  // computing by the data sheet, communication by the network's prices
};

struct ReplayRules {
  TimeSource compute = TimeSource::kFile;
  TimeSource communication = TimeSource::kModel;
  double compute_speed = 1;  // durations of the file are divided by it
  bool contention = true;    // transfers share links
};

// Each instant of a rank until the graph's end counts once, for the first of these that applies.
struct RankTimes {
  Seconds end;  // of its last node
  Seconds compute;
  Seconds communication;  // that nothing computes beside
  Seconds waiting;        // for other ranks: in a receive, or for the last member of a collective
  Seconds host;           // of the processor, and loads and stores of other memory
  Seconds idle;
};

// All collectives of a kind, or messages, that are of one size.
struct MessageRow {
  std::string what;        // "all-reduce"
  std::int64_t ranks = 2;  // of the group
  double bytes = 0;        // of each
  std::int64_t calls = 0;  // over all groups
  Seconds time;            // of one call, the mean from its start to its end
  Seconds alone;           // of one with the network for itself
  double bus_bytes_per_s = 0;
};

struct GraphPathStep {
  std::string what;
  std::int64_t nodes = 0;
  Seconds time;
};

struct GraphReplay {
  Seconds time;  // until the last node ends
  std::vector<RankTimes> ranks;
  std::int32_t critical_rank = 0;  // the first that ends last
  std::vector<MessageRow> messages;
  std::vector<GraphPathStep> critical_path;  // what the end waited for, longest first
  std::int64_t tasks = 0;
  // Nodes that last as their file states, because it has neither operations nor bytes to price.
  std::int64_t without_work = 0;
  std::int64_t roomy_receives = 0;  // GraphMeetings::roomy_receives
  std::string roomy_receive;
  struct NodeTime {
    sim::Time begin, end;
  };
  std::vector<std::vector<NodeTime>> nodes;  // by rank, node
};

// Errors name rank and node: a send without a receive or a receive without a send, collectives of
// one group that differ, nodes that wait for each other, a cluster with too few GPUs, times that
// the graph does not state.
Result<GraphReplay> replay_graph(const ExecutionGraph& graph, GraphNetwork& network,
                                 const ReplayRules& rules);

}  // namespace stepcast
