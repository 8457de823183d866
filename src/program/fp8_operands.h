// SPDX-License-Identifier: Apache-2.0
// The copies of a tensor that products in fp8 read, and what it takes to make, gather and transpose
// them (docs/fp8.md). All of it is for a shape that has fp8.
#pragma once

#include "program/block_builder.h"

namespace stepcast {

// A tensor as products read it: by rows for the product with a weight, by columns for the weight
// gradient. One copy may be both. Invalid: nobody reads it.
struct Operand {
  BufferId rows, columns;
};

// Casts `x`. Where the operation before is the norm that writes `x`, and can write fp8, it does so.
// `by_columns`: a weight gradient will read it. `cut`: tensor ranks hold parts of one tensor with
// one scale. `keeps_wide`: `x` itself is read too.
Operand cast_operand(BlockBuilder& builder, BufferId x, std::int64_t elements, bool backward,
                     bool by_columns, bool cut, bool keeps_wide = false);

// A copy of which this rank holds its share of `elements`, whole.
BufferId gather_copy(BlockBuilder& builder, const char* name, BufferId share, std::int64_t elements,
                     BlockStream stream);

// The copy by columns of one by rows: itself, where the device reads it both ways.
BufferId transposed(BlockBuilder& builder, BufferId rows, std::int64_t elements, bool backward);

}  // namespace stepcast
