// SPDX-License-Identifier: Apache-2.0
// Blocks of a program, by their places and by what they are for.
#pragma once

#include "core/id.h"

namespace stepcast {

using BlockId = Id<struct BlockTag>;

// Chunks are made of the first four; the others run at the step's ends or beside its passes.
enum class BlockKind {
  kEmbedding,
  kLayer,
  kPrediction,
  kHead,
  kZeroGradients,
  kCastGradients,
  kCopyUnit,  // between the flat tensor of a unit and the tensors of its parameters
  kGradientNorm,
  kUpdate
};
const char* name_of(BlockKind kind);  // "layer"

}  // namespace stepcast
