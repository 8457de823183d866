// SPDX-License-Identifier: Apache-2.0
// A layout's pipeline: which stage owns which chunk of the model, how many layers each chunk has,
// and in which order a stage runs its passes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/pass.h"

namespace stepcast {

struct Layout;
struct Pipeline;
struct Scenario;

Pipeline pipeline_of(const Layout& layout, std::int64_t micro_batches = 1);

// The model stands on the stages twice (Placement::kMirrored).
bool feeds_both_ends(const Layout& layout);

// Into which the layers are dealt: pp*virtual_stages, or pp where the model stands there twice.
std::int64_t model_chunks(const Layout& layout);
std::string words_of_chunks(const Layout& layout);  // "pp*virtual_stages = 4*2 = 8 chunks"

// Model chunk c (in model order, from 0) sits on this stage; of a mirrored model, the first of the
// two.
std::int64_t stage_of_chunk(const Layout& layout, std::int64_t chunk);
std::int64_t chunk_of(const Layout& layout, std::int64_t stage, std::int64_t local_chunk);

std::int64_t stage_of_last_chunk(const Layout& layout);
// Whether embedding and head are on one stage: there is only one, the model comes back up, or a
// second copy of it does.
bool ends_meet(const Layout& layout);

// Layers of each model chunk in model order, after account_for_embedding/loss and stage_layers.
std::vector<std::int64_t> deal_layers(std::int64_t layers, const Layout& layout);

// Whether its schedule, or its file, has input gradients and weight gradients apart.
bool splits_backward(const Layout& layout);

// One order per stage, of a layout that check_legality() lets pass.
std::vector<StageOrder> make_schedule(const Layout& layout, std::int64_t micro_batches);

}  // namespace stepcast
