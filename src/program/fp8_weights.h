// SPDX-License-Identifier: Apache-2.0
// Weights whose products run in fp8 or fp4, where they are parameters of a step: what gathers save
// that move them in fp8, and their casts once a step (docs/fp8.md).
#pragma once

#include "program/role_builder.h"

namespace stepcast {

struct Scenario;

// Bytes that the gather of a range of flat parameters saves, because some of it is held in fp8 or
// fp4.
ByteCount saved_by_fp8(const RoleBuilder& builder, ElementRange range);

// The copies that a step's products read, made from the parameters at its begin. Nothing where
// units are gathered: each product casts its own.
void cast_weights(BlockBuilder& builder, const Scenario& scenario, const Fp8& fp8,
                  std::int64_t elements);

}  // namespace stepcast
