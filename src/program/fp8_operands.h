// SPDX-License-Identifier: Apache-2.0
// The copies of a tensor that products in fp8 read, and what it takes to make, gather and transpose
// them (docs/fp8.md). All of it is for a shape that has fp8.
#pragma once

#include <optional>
#include <vector>

#include "program/block_builder.h"

namespace stepcast {

// A tensor as products read it: by rows for the product with a weight, by columns for the weight
// gradient. One copy may be both. Invalid: nobody reads it.
struct Operand {
  BufferId rows, columns;
};

// Elements that the buffers of both copies have room for.
struct CopyRoom {
  std::int64_t rows, columns;
};

// The buffers alone, for a kernel that writes copies beside its own work.
Operand operand_buffers(BlockBuilder& builder, const CopyRoom& room, bool backward,
                        bool by_columns);

// Casts `x`. `by_columns`: a weight gradient will read it. `cut`: tensor ranks hold parts of one
// tensor with one scale. `room`: where it is more than the elements.
Operand cast_operand(BlockBuilder& builder, BufferId x, std::int64_t elements, bool backward,
                     bool by_columns, bool cut, std::optional<CopyRoom> room = {});

// A copy of which this rank holds its share of `elements`, whole.
BufferId gather_copy(BlockBuilder& builder, const char* name, BufferId share, std::int64_t elements,
                     BlockStream stream);

// The copy by columns of one by rows: itself, where the device reads it both ways.
BufferId transposed(BlockBuilder& builder, BufferId rows, std::int64_t elements, bool backward);

// Whether an operation makes copies in fp8 of what is wider: a cast, or a norm that does its work.
bool makes_fp8(const Block& block, const Operation& operation);

// Moves casts of a norm's output into the norm, once all of a block is written. Who reads the
// output decides: if a product alone does, the norm is part of its module and writes fp8 in place
// of 16 bits. Anybody else needs the 16 bits, so the norm writes those, and each product casts for
// itself (Transformer Engine, module/layernorm_linear.py: with_quantized_norm). In the same way a
// norm finds the largest element of what it writes. `apart`: outputs of norms that no product's
// module has.
void cast_in_norms(BlockBuilder& builder, const std::vector<BufferId>& apart = {});

}  // namespace stepcast
