// SPDX-License-Identifier: Apache-2.0
// Activations that wait for their backward in host memory (Transformer Engine, cpu_offload.py, as
// Megatron-LM's --cpu-offloading uses it): what one of the first layers has saved is copied out
// while the next one runs, and comes back while the backward of the next one runs. At most two
// layers lie on their way.
#pragma once

#include "operation/memory_parts.h"

namespace stepcast {

struct Block;
struct Program;
struct Role;
struct Scenario;

// Bytes that a block has saved once its forward has run: all that the pass leaves, with the input
// that it was handed and without the output that it hands on.
MemoryParts saved_by(const Block& block);

// The first of a chunk's layers are offloaded: the fraction, and never the last, beside whose
// backward the one before comes back.
std::int64_t offloaded_layers(const Scenario& scenario, std::int64_t layers);

// Writes the copies into the list of a role, whose runs are cut between layers.
void offload_activations(const Scenario& scenario, const Program& program, Role& role);

}  // namespace stepcast
