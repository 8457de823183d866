// SPDX-License-Identifier: Apache-2.0
// Who meets whom in a graph: each send its receive, and the ranks of a group in each of its
// collectives. Nodes of all ranks are counted through.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "graphs/execution_graph.h"
#include "operation/collective.h"

namespace stepcast {

struct Meeting {
  std::int32_t first = 0, count = 0;  // of GraphMeetings::members; a send before its receive
  std::int32_t channel = kNowhere;    // of messages with one sender, receiver and tag
  double bytes = 0;
  bool is_message() const { return channel != kNowhere; }
};

struct GraphMeetings {
  std::vector<std::int32_t> first_node;  // by rank, and one past the end: into all nodes
  std::vector<std::int32_t> rank_of;     // by node
  std::vector<std::int32_t> meeting_of;  // by node; kNowhere: it meets nobody
  std::vector<Meeting> meetings;
  std::vector<std::int32_t> members;  // nodes
  std::int32_t channels = 0;
  // Receives that have room for more than is sent to them; the sender's bytes move.
  std::int64_t roomy_receives = 0;
  std::string roomy_receive;  // the first of them, in words

  std::span<const std::int32_t> members_of(const Meeting& meeting) const {
    return {members.data() + meeting.first, static_cast<std::size_t>(meeting.count)};
  }
  std::int32_t place(std::int32_t node) const {  // in its rank
    return node - first_node[static_cast<std::size_t>(rank_of[static_cast<std::size_t>(node)])];
  }
};

// The n-th send meets the n-th receive of the same ranks and tag, and the n-th collective of one
// member of a group the n-th of the others, in the order of their files.
Result<GraphMeetings> match_nodes(const ExecutionGraph& graph);

// A collective costs as much as one of these: a root of gather, scatter and reduce has as many
// bytes as that of a broadcast.
CollectiveKind kind_of(GraphCollective kind);

}  // namespace stepcast
