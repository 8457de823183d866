// SPDX-License-Identifier: Apache-2.0
// A shell script that starts one process per GPU on every node of a cluster: by torchrun, started
// on each node by the user or by Slurm. Node ranks are static, so that global ranks (and with them
// the rank map) follow the order of the nodes.
#pragma once

#include <string>
#include <vector>

#include "recipes/imported_scenario.h"

namespace stepcast {

struct Scenario;

inline constexpr int kRendezvousPort = 29500;  // torchrun's own default

enum class Launcher { kTorchrun, kSlurm, kPod };  // kPod: the node's rank is in $NODE_RANK

struct ArgumentBlock {
  std::string name;                // of the shell array
  std::vector<std::string> lines;  // quoted where it must be: "--num-layers 32"
};

struct LaunchProgram {
  std::vector<std::string> variables;  // "MEGATRON_PATH=\"${MEGATRON_PATH:-.}\"  # ..."
  std::string words;                   // what torchrun starts: "\"$MEGATRON_PATH/pretrain_gpt.py\""
  std::vector<ArgumentBlock> blocks;
};

// Errors: GPUs that are not the same number on every node.
Result<std::string> launch_script(const Scenario& scenario, const LaunchProgram& program,
                                  Launcher launcher, const std::vector<Setting>& remarks);

// Nodes that a launcher starts, and processes on each; not with a partly used last node.
struct World {
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 1;
};
Result<World> world_of(const Scenario& scenario);

}  // namespace stepcast
