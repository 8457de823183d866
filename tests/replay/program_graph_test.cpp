// SPDX-License-Identifier: Apache-2.0
#include "replay/program_graph.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/each.h"
#include "graphs/chakra_reader.h"
#include "graphs/chakra_writer.h"
#include "layout/data_folders.h"
#include "predict/prediction.h"
#include "replay/cluster_network.h"
#include "replay/graph_replay.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

struct Case {
  const char* name;
  const char* layout;
  const char* training;
};

// The replay of the traces, as a file holds them, beside the forecast of the same step. The
// forecast is a steady state and has the host's launches, so a few percent lie between them.
TEST(ProgramGraph, ReplaysNearItsForecast) {
  const std::vector<Case> cases{
      {"dp", R"({"dp": 16})", R"({"global_batch": 64, "sequence_length": 4096})"},
      {"tp, pp", R"({"tp": 4, "pp": 2, "micro_batch": 1})",
       R"({"global_batch": 32, "sequence_length": 4096})"},
      {"interleaved", R"({"tp": 2, "pp": 4, "virtual_stages": 2, "schedule": "interleaved"})",
       R"({"global_batch": 32, "sequence_length": 4096})"},
      {"fsdp", R"({"dp": 16, "zero": 3})",
       R"({"global_batch": 64, "sequence_length": 4096, "framework": "fsdp"})"}};
  for (const Case& one : each_of(cases)) {
    const Scenario scenario = testing::scenario_from(
        std::string(R"({"stepcast": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100x2",
                        "layout": )") +
        one.layout + R"(, "training": )" + one.training + "}");
    const DataFolders folders = testing::source_folders();
    const auto graph = program_graph(scenario, folders);
    ASSERT_TRUE(graph) << to_string(graph.error());
    std::vector<std::string> texts;
    for (std::size_t r = 0; r < graph->ranks.size(); ++r) {
      texts.push_back(chakra_text(*graph, static_cast<std::int32_t>(r)));
    }
    ChakraRules rules;
    for (std::size_t g = 0; g < graph->groups.size(); ++g) {
      rules.groups[std::to_string(g + 1)] = graph->groups[g];
    }
    const auto read = chakra_of(texts, rules);
    ASSERT_TRUE(read) << one.name << to_string(read.error());
    const auto network = cluster_network(scenario.cluster, folders);
    ASSERT_TRUE(network);
    const auto replay = replay_graph(*read, **network, {});
    ASSERT_TRUE(replay) << one.name << to_string(replay.error());
    const auto forecast = predict(scenario, folders);
    ASSERT_TRUE(forecast);
    const double step = forecast->step_time.value();
    EXPECT_NEAR(replay->time.value(), step, 0.05 * step) << one.name;
  }
}

}  // namespace
}  // namespace stepcast
