// SPDX-License-Identifier: Apache-2.0
// Settings that the trainers around Hugging Face's libraries share: batches by device, FSDP's
// section, adapters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "recipes/json_keys.h"

namespace stepcast {

// The batch of a device, over so many steps: ranks that share a batch (tp, cp) count once. Layout
// degrees must be set before. An error asks for the number of GPUs where nothing tells it.
void set_device_batch(std::optional<std::int64_t> micro_batch,
                      std::optional<std::int64_t> accumulation, const char* micro_key,
                      ImportedScenario& out);

// The section `fsdp_config` of Accelerate and of Axolotl, whose keys may lack "fsdp_". Sets zero,
// recompute and offload, and takes the framework as FSDP's.
void read_fsdp_section(JsonKeys& fsdp, ImportedScenario& out);

// Parts of the tokens that a loss of hidden states takes, in a usual model: as many as the
// vocabulary is wider than the model, rounded up to a power of two, which is 32 for Llama 3's
// (linkedin/Liger-Kernel, ops/fused_linear_cross_entropy.py).
inline constexpr std::int64_t kLinearLossChunks = 32;
// Liger's kernels: all of them, or one for each key of Axolotl's.
void read_liger(JsonKeys& keys, ImportedScenario& out);

// PyTorch's DistributedDataParallel, or a model alone on its GPU.
void set_plain_data_parallel(const char* key, ImportedScenario& out);

// Names of PEFT's modules as training.lora_targets.
void set_lora_targets(const SortedJson* modules, const char* key, ImportedScenario& out);
void set_lora(bool quantized, std::optional<std::int64_t> rank, const char* key,
              ImportedScenario& out);
void set_lora_dropout(std::optional<double> share, const char* key, ImportedScenario& out);

// Optimizers by the Trainer's names. Those with other states than Adam's are told.
void note_optimizer(JsonKeys& keys, const char* key, ImportedScenario& out);

}  // namespace stepcast
