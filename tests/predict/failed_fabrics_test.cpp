// SPDX-License-Identifier: Apache-2.0
// Random fabrics of each kind with one part that has failed or is slow: each is refused in words or
// forecast, and never faster than the whole (docs/formats/cluster.md, "Fabrics").
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "kept_choices.h"
#include "layout/read_scenario.h"
#include "predict/prediction.h"
#include "random_choice.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::pick;
using testing::scenario_from;
using testing::source_folders;

struct DrawnFabric {
  const char* kind;
  std::string keys;
  int gpus;
};

DrawnFabric draw_fabric(std::mt19937& random) {
  const int per_node = pick(random, {1, 2, 4}), nodes = pick(random, {2, 3, 4, 6});
  std::string keys =
      fmt::format(R"("base": "{}", "nodes": {}, "gpus_per_node": {}, "nics_per_node": {})",
                  pick(random, {0, 1}) == 0 ? "dgx-a100-80g" : "dgx-h100", nodes, per_node,
                  pick(random, {1, per_node}));
  const int planes = pick(random, {1, 1, 2, 4});
  if (planes > 1) keys += fmt::format(R"(, "planes": {})", planes);
  const char* kind = "planes";
  switch (pick(random, {0, 1, 2, 3, 4})) {
    case 4:
      kind = "hashed";
      keys += fmt::format(R"(, "ecmp": "hashed", "uplinks": {}, "nodes_per_leaf_group": {})",
                          pick(random, {2, 3}), pick(random, {1, 2}));
      break;
    case 0:
      keys += fmt::format(R"(, "nodes_per_leaf_group": {})", pick(random, {1, 2, 32}));
      break;
    case 1:
      kind = "rails apart";
      keys += fmt::format(R"(, "rails_joined": false, "nodes_per_leaf_group": {})",
                          pick(random, {1, 2, 32}));
      break;
    case 2:
      kind = "dragonfly";
      keys +=
          fmt::format(R"(, "fabric": "dragonfly", "router_link": "{0} GB/s",
          "global_link": "{0} GB/s", "nodes_per_router": {1}, "routers_per_group": {2},
          "global_links": {1})",
                      pick(random, {5, 25, 100}), pick(random, {1, 2}), pick(random, {1, 2, 3}));
      break;
    default:
      kind = "torus";
      keys += fmt::format(R"(, "fabric": "torus", "router_link": "{} GB/s", "torus": [{}, {}])",
                          pick(random, {5, 25, 100}), nodes, pick(random, {1, 2}));
  }
  return {kind, std::move(keys), nodes * per_node};
}

std::string scenario_of(const DrawnFabric& fabric, const std::string& fail) {
  return fmt::format(R"({{"stepcast": 1, "model": "gpt2", "cluster": {{{}{}}},
      "training": {{"global_batch": {}}}, "layout": {{"dp": {}, "pp": {}}}}})",
                     fabric.keys, fail.empty() ? "" : ", \"fail\": \"" + fail + "\"",
                     12 * fabric.gpus, fabric.gpus % 2 == 0 ? fabric.gpus / 2 : fabric.gpus,
                     fabric.gpus % 2 == 0 ? 2 : 1);
}

// A cable of a NIC or between switches, a NIC, a switch, or a plane.
std::string draw_part(std::mt19937& random, const Topology& graph) {
  std::vector<std::string> parts;
  bool planes = false;
  for (const Vertex& vertex : graph.vertices()) planes = planes || vertex.plane > 0;
  for (std::size_t i = 0; i < graph.vertices().size(); ++i) {
    const VertexKind kind = graph.vertices()[i].kind;
    if (kind == VertexKind::kNic || kind == VertexKind::kLeaf || kind == VertexKind::kSpine) {
      parts.push_back(graph.name(VertexId(i)));
    }
  }
  for (const Link& link : graph.links()) {
    if (link.kind != LinkKind::kNic && link.kind != LinkKind::kFabric) continue;
    if (link.from < link.to) parts.push_back(graph.name(link.from) + "-" + graph.name(link.to));
  }
  if (planes && pick(random, {0, 1, 2}) == 0) return "plane1";
  std::uniform_int_distribution<std::size_t> any(0, parts.size() - 1);
  return parts[any(random)];
}

// A longer step of the whole has the reasons of kept_choices.h, by as much as there: NCCL chooses
// by what is left of NICs.
bool has_reason(const Scenario& failed, const Scenario& whole, Seconds before) {
  const auto kept = testing::keep_choices(failed, whole, source_folders());
  EXPECT_TRUE(kept.has_value());
  if (!kept) return false;
  const double longer = kept->step_time / before;
  return (kept->differ && longer <= 1 + 1e-3) || (kept->apart <= 1 + 5e-3 && longer <= 1.15);
}

TEST(FailedFabrics, AreRefusedOrForecastAndNeverFaster) {
  std::mt19937 random(20261129);
  std::map<std::string, int> forecast;
  int refused = 0, reasons = 0;
  for (int i = 0; i < 150; ++i) {
    const DrawnFabric fabric = draw_fabric(random);
    const Scenario whole = scenario_from(scenario_of(fabric, ""));
    const auto sound = predict(whole, source_folders());
    ASSERT_TRUE(sound.has_value()) << fabric.keys << to_string(sound.error());
    const std::string part = draw_part(random, whole.cluster.topology);
    for (const char* left : {"=90%", "=50%", "=10%", ""}) {
      const std::string text = scenario_of(fabric, part + left);
      const auto document = std::move(*JsonDocument::parse(text, "drawn.json"));
      const auto scenario = read_scenario(*document, source_folders());
      if (!scenario) {
        for (const Error& error : scenario.error()) EXPECT_FALSE(error.message.empty()) << text;
        ++refused;
        continue;
      }
      const auto slow = predict(*scenario, source_folders());
      ASSERT_TRUE(slow.has_value()) << text << to_string(slow.error());
      ++forecast[fabric.kind];
      if (slow->step_time >= (1 - 1e-9) * sound->step_time) continue;
      EXPECT_TRUE(has_reason(*scenario, whole, slow->step_time))
          << text << slow->step_time.value() << " and whole " << sound->step_time.value();
      ++reasons;
    }
  }
  for (const char* kind : {"planes", "rails apart", "dragonfly", "torus", "hashed"}) {
    EXPECT_GT(forecast[kind], 40) << kind;
  }
  EXPECT_GT(refused, 4);
  EXPECT_LT(reasons, 20);
}

}  // namespace
}  // namespace stepcast
