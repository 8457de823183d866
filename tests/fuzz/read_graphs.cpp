// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "fuzz/readers.h"
#include "fuzz/target.h"
#include "graphs/chakra_reader.h"
#include "graphs/goal_reader.h"
#include "replay/dimension_network.h"
#include "replay/graph_replay.h"

namespace stepcast::fuzz {
namespace {

constexpr std::int64_t kMostRanks = 64;  // more find nothing that these do not

// A graph that a reader takes also runs, or says why not.
void replay_small(const Result<ExecutionGraph>& graph) {
  say_errors_of(graph);
  if (!graph || static_cast<std::int64_t>(graph->ranks.size()) > kMostRanks) return;
  const NetworkDimension all{DimensionForm::kFullyConnected, kMostRanks, BytesPerSecond(1e9),
                             Seconds(1e-6)};
  const auto network = dimension_network({"network.yml", {all}}, {});
  say_errors_of(replay_graph(*graph, *network, {}));
}

}  // namespace

void read_goal_schedule(std::string_view text) { replay_small(goal_of(text, "app.goal")); }

void read_chakra_trace(std::string_view text) {
  ChakraRules rules;
  rules.groups["1"] = {0, 1};
  replay_small(chakra_of({std::string(text), std::string(text)}, rules));
}

}  // namespace stepcast::fuzz
