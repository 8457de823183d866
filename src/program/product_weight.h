// SPDX-License-Identifier: Apache-2.0
// The matrix of a layer's products: how it is stored, and what a product with it reads in its
// place.
#pragma once

#include "program/block_builder.h"

namespace stepcast {

// Says of a layer's matrix how it is stored and read: a frozen one in four bits or fp8, a trained
// one in the model's type.
void store_matrix(const BlockBuilder& builder, Parameter& matrix);

// Makes the copy of a matrix of `elements` that one product reads: expanded from four bits, or cast
// to fp8. Invalid where the product reads the matrix itself, or a copy that is kept.
BufferId matrix_for_product(BlockBuilder& builder, ParameterId matrix, std::int64_t elements,
                            bool backward);

}  // namespace stepcast
