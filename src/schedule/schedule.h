// SPDX-License-Identifier: Apache-2.0
// The order in which a stage runs forward and backward passes: data, not time. Waiting, transfers
// and bubbles come out of the replay.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "layout/scenario.h"

namespace stepcast {

// Backward runs as one pass, or apart: input gradients, which the stage before waits for, and
// weight gradients, which nobody waits for.
enum class Pass { kForward, kBackward, kInputGradient, kWeightGradient };
inline constexpr int kPasses = 4;

struct Slot {
  Pass pass;
  std::int32_t micro_batch;
  std::int32_t chunk;  // local index on its stage, 0 .. virtual_stages-1
  bool operator==(const Slot&) const = default;
};

using StageOrder = std::vector<Slot>;

// Model chunk c (in model order, 0 .. pp*virtual_stages-1) sits on this stage; V schedules fold.
std::int64_t stage_of_chunk(const Layout& layout, std::int64_t chunk);
std::int64_t chunk_of(const Layout& layout, std::int64_t stage, std::int64_t local_chunk);

// Layers of each model chunk in model order, after account_for_embedding/loss and stage_layers.
std::vector<std::int64_t> deal_layers(std::int64_t layers, const Layout& layout);

// One order per stage. gpipe (Huang et al. 2019), 1f1b (PipeDream-Flush, Narayanan et al. 2021,
// section 2.2.1), interleaved (section 2.2.2, Megatron's warm-up rule).
std::vector<StageOrder> make_schedule(const Layout& layout, std::int64_t micro_batches);

// PyTorch's pipeline CSV: one row per rank, cells like 0F0, 3B1, empty = idle.
std::string to_csv(const Layout& layout, const std::vector<StageOrder>& orders);
Result<std::vector<StageOrder>> from_csv(const std::string& text, const Layout& layout,
                                         std::int64_t micro_batches, const std::string& file);

// Largest number of micro-batch chunks whose forward is done and backward is not, per stage.
std::int64_t most_in_flight(const StageOrder& order);

}  // namespace stepcast
