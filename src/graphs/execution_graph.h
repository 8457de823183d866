// SPDX-License-Identifier: Apache-2.0
// The work of many ranks as a graph: what computes, what is sent, and what waits for what on each
// rank. Chakra's execution traces and LogGOPSim's schedules (GOAL) are read into this one form
// (docs/formats/graphs.md), and a forecast's program is written from it.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/quantity.h"

namespace stepcast {

enum class NodeKind : std::uint8_t {
  kNothing,  // takes no time; others may wait for it
  kCompute,
  kHost,    // computes on the rank's processor
  kMemory,  // loads or stores memory of another place
  kSend,
  kReceive,
  kCollective
};

// Chakra's kinds, in its own order (et_def.proto, CollectiveCommType).
enum class GraphCollective : std::uint8_t {
  kAllReduce,
  kReduce,
  kAllGather,
  kGather,
  kScatter,
  kBroadcast,
  kAllToAll,
  kReduceScatter,
  kReduceScatterBlock,
  kBarrier
};
inline constexpr int kGraphCollectives = 10;
const char* name_of(GraphCollective kind);  // "all-reduce"

inline constexpr std::int32_t kNowhere = -1;  // no rank, group or name

struct GraphNode {
  std::uint64_t id = 0;          // by which its file names it; of GOAL the line
  std::int32_t name = kNowhere;  // into ExecutionGraph::names
  NodeKind kind = NodeKind::kNothing;
  GraphCollective collective = GraphCollective::kAllReduce;
  std::uint16_t lane = 0;         // nodes of one lane run one after the other
  std::int32_t peer = kNowhere;   // of a send or receive: a rank
  std::int32_t group = kNowhere;  // of a collective: into ExecutionGraph::groups
  std::int64_t tag = 0;
  // Communication moves them, counted as nccl-tests does; computing reads and writes them.
  double bytes = 0;
  double flops = 0;
  Seconds duration;                                     // that its file states; 0: none
  std::int32_t first_dependency = 0, dependencies = 0;  // of RankGraph::dependencies
};

// The node waits for the end of another one of its rank, or for its start.
struct GraphDependency {
  std::int32_t node;
  bool on_start = false;
};

struct RankGraph {
  std::string file;
  std::vector<GraphNode> nodes;      // in the order of the file
  std::vector<std::int32_t> labels;  // of GOAL, by node: into ExecutionGraph::names, or kNowhere
  std::vector<GraphDependency> dependencies;

  std::span<const GraphDependency> dependencies_of(const GraphNode& node) const {
    return {dependencies.data() + node.first_dependency,
            static_cast<std::size_t>(node.dependencies)};
  }
};

// When a send ends, and whether its message waits for the receive.
enum class SendRule {
  kArrives,  // it leaves when the send is ready, and the send ends as it arrives (ASTRA-sim)
  kEager     // up to `eager_bytes` the send ends at once; a longer message waits for its receive
};

struct ExecutionGraph {
  const char* format = "";  // "Chakra"
  std::vector<RankGraph> ranks;
  std::vector<std::vector<std::int32_t>> groups;  // ranks, in the order of the group
  std::vector<std::string> names;
  SendRule sends = SendRule::kArrives;
  double eager_bytes = std::numeric_limits<double>::infinity();
  std::int64_t ignored_dependencies = 0;  // on nodes that are not there

  std::int64_t nodes() const;
  // "rank 3 node 17 (attention)", "rank 3 line 17 (label)"
  std::string describe(std::int32_t rank, std::int32_t node) const;
};

// Limits of what is read: ranks are those of the largest clusters, and a node takes 100 bytes of
// memory.
inline constexpr std::int64_t kMostGraphRanks = 131072;
inline constexpr std::int64_t kMostGraphNodes = std::int64_t{1} << 26;
// One word, and one value of one node.
inline constexpr std::size_t kLongestGraphWord = 4096;
inline constexpr double kMostGraphBytes = 1e15;
inline constexpr double kMostGraphFlops = 1e21;
inline constexpr double kLongestGraphNode_s = 1e5;

}  // namespace stepcast
