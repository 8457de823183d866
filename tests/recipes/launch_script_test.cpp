// SPDX-License-Identifier: Apache-2.0
// docs/formats/cluster.md, "Placement": hosts stand in a script in the order of their ranks.
#include "recipes/launch_script.h"

#include <gtest/gtest.h>

#include <string>

#include "recipes/has.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::has;
using testing::scenario_from;

Scenario on(const std::string& cluster, int dp) {
  return scenario_from(R"({"stepcast": 1, "model": "gpt2", "cluster": )" + cluster +
                       R"(, "training": {"global_batch": )" + std::to_string(dp) +
                       R"(}, "layout": {"dp": )" + std::to_string(dp) + "}}");
}

constexpr const char* kPlaced = R"({"base": "dgx-h100", "nodes": 4, "place": "node[4-5,0-1]"})";

std::string script(const Scenario& scenario, Launcher launcher) {
  const auto out = launch_script(scenario, {}, launcher, {});
  EXPECT_TRUE(out.has_value());
  return out.value_or("");
}

TEST(LaunchScript, NamesHostsInTheOrderOfTheirRanks) {
  const Scenario placed = on(kPlaced, 32);
  const std::string slurm = script(placed, Launcher::kSlurm);
  EXPECT_TRUE(has(slurm, "#SBATCH --nodelist=node[4-5,0-1]\n")) << slurm;
  EXPECT_TRUE(has(slurm, "export HOSTS='node4 node5 node0 node1'\n")) << slurm;
  EXPECT_TRUE(has(slurm, "--node-rank=\"$rank\"")) << slurm;
  EXPECT_FALSE(has(slurm, "SLURM_NODEID")) << slurm;
  const std::string torchrun = script(placed, Launcher::kTorchrun);
  EXPECT_TRUE(has(torchrun, "export HOSTS='node4 node5 node0 node1'\n")) << torchrun;
  EXPECT_FALSE(has(script(placed, Launcher::kPod), "HOSTS"));
}

TEST(LaunchScript, LeavesNodesToTheLauncherWhereNoneAreNamed) {
  const std::string slurm = script(on(R"({"base": "dgx-h100", "nodes": 4})", 32), Launcher::kSlurm);
  EXPECT_TRUE(has(slurm, "--node-rank=\"$SLURM_NODEID\"")) << slurm;
  EXPECT_FALSE(has(slurm, "HOSTS") || has(slurm, "--nodelist") || has(slurm, "--segment"));
}

// 32 trays are two racks of 16, each in a segment of its own.
TEST(LaunchScript, AsksForSegmentsOfWholeRacks) {
  const std::string slurm =
      script(on(R"({"base": "gb200-nvl72", "nodes": 32})", 128), Launcher::kSlurm);
  EXPECT_TRUE(has(slurm, "#SBATCH --segment=16\n")) << slurm;
}

TEST(LaunchScript, RefusesGpusInAnOrderOfTheirOwn) {
  const auto refused = launch_script(
      on(R"({"base": "dgx-h100", "place": "node0/gpu[4-7,0-3]"})", 8), {}, Launcher::kSlurm, {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().front().path, "cluster.place");
}

}  // namespace
}  // namespace stepcast
