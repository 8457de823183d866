// SPDX-License-Identifier: Apache-2.0
// Whether the births and deaths that a block's buffers were given fit what its operations do. The
// order of passes is walked once more, and every buffer is unborn, alive, handed on or dead: it is
// born once, read and written only while it is alive, and freed once; nothing but what the block
// hands on is alive behind its last pass. Every lowering asks, so memory never counts what is not
// there.
#pragma once

#include <optional>
#include <string>

#include "program/liveness.h"

namespace stepcast {

struct Block;

// The first fault, with block, pass, operation and buffer: "layer, backward: qkv_wgrad reads
// attention_norm, which is dead". Nothing where all is sound.
std::optional<std::string> fault_of(const Block& block, const BlockLives& lives);

}  // namespace stepcast
