// SPDX-License-Identifier: Apache-2.0
#include "sim/wait_graph.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "core/assert.h"

namespace stepcast::sim {
namespace {

std::size_t at(std::int32_t id) { return static_cast<std::size_t>(id); }

// Turns counts at [i + 1] into the begin of each list, then hands out one slot after the other.
class SlotFiller {
 public:
  explicit SlotFiller(std::vector<std::int32_t>& counts) {
    std::partial_sum(counts.begin(), counts.end(), counts.begin());
    next_.assign(counts.begin(), counts.end() - 1);
  }
  std::size_t take(std::int32_t row) { return at(next_[at(row)]++); }

 private:
  std::vector<std::int32_t> next_;
};

// The node that stands for each member.
std::vector<std::int32_t> nodes_of_members(const Workload& workload, Graph& graph) {
  const auto& members = workload.member_table();
  std::vector<std::int32_t> nodes(members.size());
  for (std::size_t m = 0; m < members.size(); ++m) {
    nodes[m] = members[m].task;
    const Workload::Bond* bond = workload.bond_of(members[m]);
    if (bond == nullptr || !bond->holds_from_posting()) continue;
    nodes[m] = static_cast<std::int32_t>(workload.tasks() + graph.holders.size());
    graph.holders.push_back(static_cast<std::int32_t>(m));
  }
  return nodes;
}

void mark_constrained(const Workload& workload, Graph& graph) {
  graph.is_constrained.assign(workload.tasks(), 0);
  for (const Workload::Member& member : workload.member_table()) {
    if (member.bond >= 0) graph.is_constrained[at(member.task)] = 1;
  }
}

}  // namespace

Graph make_graph(const Workload& workload) {
  Graph graph;
  const auto& members = workload.member_table();
  const std::vector<std::int32_t> nodes = nodes_of_members(workload, graph);
  mark_constrained(workload, graph);

  graph.waits.assign(workload.tasks() + graph.holders.size(), 0);
  graph.end_begin.assign(workload.tasks() + 1, 0);
  graph.start_begin.assign(workload.tasks() + 1, 0);
  for (std::size_t m = 0; m < members.size(); ++m) {
    const Workload::Member& member = members[m];
    STEPCAST_ASSERT(member.is_placed(), "every member has been placed");
    if (nodes[m] != member.task) ++graph.waits[at(member.task)];  // its node is its own
    if (member.previous >= 0) {
      ++graph.waits[at(nodes[m])];
      ++graph.end_begin[at(members[at(member.previous)].task) + 1];
    }
    if (member.issuer >= 0) {
      ++graph.waits[at(nodes[m])];
      ++graph.start_begin[at(member.issuer) + 1];
    }
  }
  for (const Workload::Edge& edge : workload.edges()) {
    ++graph.waits[at(nodes[at(edge.after_member)])];
    ++graph.end_begin[at(edge.before_task) + 1];
  }

  SlotFiller ends(graph.end_begin);
  SlotFiller starts(graph.start_begin);
  graph.end_nodes.resize(at(graph.end_begin.back()));
  graph.start_nodes.resize(at(graph.start_begin.back()));
  for (std::size_t m = 0; m < members.size(); ++m) {
    const Workload::Member& member = members[m];
    if (member.previous >= 0) {
      graph.end_nodes[ends.take(members[at(member.previous)].task)] = nodes[m];
    }
    if (member.issuer >= 0) graph.start_nodes[starts.take(member.issuer)] = nodes[m];
  }
  for (const Workload::Edge& edge : workload.edges()) {
    graph.end_nodes[ends.take(edge.before_task)] = nodes[at(edge.after_member)];
  }
  return graph;
}

}  // namespace stepcast::sim
