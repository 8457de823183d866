// SPDX-License-Identifier: Apache-2.0
#include "graphs/execution_graph.h"

#include <fmt/format.h>

#include "core/limits.h"
#include "core/text/characters.h"

namespace stepcast {

const char* name_of(GraphCollective kind) {
  static constexpr const char* kNames[kGraphCollectives] = {
      "all-reduce", "reduce",         "all-gather",           "gather", "scatter", "broadcast",
      "all-to-all", "reduce-scatter", "reduce-scatter-block", "barrier"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::int64_t ExecutionGraph::nodes() const {
  std::int64_t count = 0;
  for (const RankGraph& rank : ranks) count += static_cast<std::int64_t>(rank.nodes.size());
  return count;
}

std::string ExecutionGraph::describe(std::int32_t rank, std::int32_t node) const {
  const RankGraph& own = ranks[static_cast<std::size_t>(rank)];
  const GraphNode& what = own.nodes[static_cast<std::size_t>(node)];
  const std::int32_t label =
      own.labels.empty() ? what.name : own.labels[static_cast<std::size_t>(node)];
  std::string name;
  if (label != kNowhere) {
    const std::string& known = names[static_cast<std::size_t>(label)];
    name = fmt::format(" ({})", shortened(known, kLongestQuote));
  }
  const char* place = own.labels.empty() ? "node" : "line";
  return fmt::format("rank {} {} {}{}", rank, place, what.id, name);
}

}  // namespace stepcast
