// SPDX-License-Identifier: Apache-2.0
// A resource of a cluster at another speed.
#include "plan/what_if.h"
#include "core/json_tree.h"
#include "core/text/escape.h"

#include "core/each.h"
#include "predict/prediction.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::scenario_from;
using testing::source_folders;

// Two GPUs and an NVSwitch whose cables differ: no figure of a cluster describes it.
constexpr char kGraph[] = R"({"stepcast": 1, "model": "gpt2", "training": {"global_batch": 8},
  "cluster": {"accelerator": "a100-sxm4-80g", "vertices": [
      {"name": "a", "kind": "gpu", "node": 0}, {"name": "b", "kind": "gpu", "node": 0},
      {"name": "switch", "kind": "nvswitch", "node": 0}], "links": [
      {"between": ["a", "switch"], "capacity": "300 GB/s"},
      {"between": ["b", "switch"], "capacity": "30 GB/s"}]}})";

TEST(WhatIf, RefusesAGraphInsteadOfReplacingIt) {
  const Scenario scenario = scenario_from(kGraph);
  for (const ClusterResource& resource : each_of(cluster_resources())) {
    const auto changed = apply_what_if(scenario, {&resource, 2});
    ASSERT_FALSE(changed) << resource.name;
    EXPECT_NE(to_string(changed.error()).find("'irregular' is not supported"), std::string::npos)
        << to_string(changed.error());
  }
}

// A GPU at another speed is no longer the one of its name.
TEST(WhatIf, IsInTheResolvedScenario) {
  const Scenario scenario = scenario_from(
      R"({"stepcast": 1, "model": "gpt2", "cluster": "dgx-h100x2",
          "training": {"global_batch": 64}})");
  const auto before = predict(scenario, source_folders());
  ASSERT_TRUE(before);
  for (const ClusterResource& resource : each_of(cluster_resources())) {
    const auto changed = apply_what_if(scenario, {&resource, 0.5});
    ASSERT_TRUE(changed) << to_string(changed.error());
    const auto forecast = predict(*changed, source_folders());
    const auto again = predict(scenario_from(json_text(to_json(*changed))), source_folders());
    ASSERT_TRUE(forecast && again) << resource.name;
    EXPECT_EQ(forecast->step_time, again->step_time) << resource.name;
    EXPECT_NE(to_json(*changed), to_json(scenario)) << resource.name;
  }
}

}  // namespace
}  // namespace stepcast
