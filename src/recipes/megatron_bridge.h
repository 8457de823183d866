// SPDX-License-Identifier: Apache-2.0
// Megatron-Bridge's configuration as it writes it: run_config.yaml of a checkpoint and
// ConfigContainer.to_yaml (NVIDIA-NeMo/Megatron-Bridge, src/megatron/bridge/training/config.py,
// 2025). Its sections hold Megatron-LM's arguments, some by other names.
#pragma once

#include <optional>
#include <string>

namespace stepcast {

// The arguments as Megatron-LM prints them (recipes/megatron_arguments.h); nothing where the text
// is no such configuration, or a part of one that lacks the model.
std::optional<std::string> arguments_of_bridge(const std::string& text);

}  // namespace stepcast
