// SPDX-License-Identifier: Apache-2.0
// Megatron-LM's command line, both ways. Flags and their rules: NVIDIA/Megatron-LM,
// megatron/training/arguments.py and megatron/core/transformer/transformer_config.py (2025).
#pragma once

#include <array>
#include <string>
#include <vector>

#include "layout/recomputed_modules.h"
#include "recipes/imported_scenario.h"
#include "recipes/launch_script.h"

namespace stepcast {

struct Scenario;

// The arguments of pretrain_gpt.py that realise the scenario, on mock data.
LaunchProgram megatron_program(const Scenario& scenario);

// A shell script with the flags (arrays, variables, continuations), or the flags alone.
ImportedScenario read_megatron(const ImportInput& input);

// Lists what Megatron's own checks would refuse.
Errors check_megatron(const Scenario& scenario);

// A flag whose value is a key's: the same in both directions.
struct MegatronCount {
  const char* flag;
  const char* path;
  std::int64_t (*of)(const Scenario&);
};
const std::vector<MegatronCount>& megatron_counts();

// Megatron's names of recomputed modules and stepcast's.
struct MegatronModule {
  const char* megatron;
  RecomputedModule stepcast;
};
const std::vector<MegatronModule>& megatron_modules();

// --cp-comm-type, in the order of ContextMethod.
inline constexpr std::array kMegatronContext = {"p2p", "allgather", "a2a", "a2a+p2p"};

// Ways to scale rotary positions, as Hugging Face names them.
inline constexpr const char* kLlamaScaling = "llama3";
inline constexpr const char* kYarn = "yarn";

// The kernels that --attention-backend fused and flash run, by the names that profiles have. With
// flash-attn 3 beside flash-attn 2, Transformer Engine takes the newer.
inline constexpr const char* kFusedKernel = "cudnn";
inline constexpr const char* kFlashKernel = "fa2";

// Flags that change no cost: data, logs, checkpoints, learning rates, numerics.
bool is_megatron_flag_without_cost(std::string_view flag);

}  // namespace stepcast
