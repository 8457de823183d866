// SPDX-License-Identifier: Apache-2.0
// The units of a stage whose parameters are sharded: what is gathered before it is used, and whose
// gradients are reduced together. A layer is a unit. Without a pipeline embedding and head make one
// together, the root, which FSDP wraps around the layers; on a pipeline each is a unit of its
// stage.
#pragma once

#include <vector>

#include "program/role_builder.h"

namespace stepcast {

struct Scenario;

// Parameters that one collective gathers: a range of one group of ranks. Experts, which have data
// ranks of their own, are another part of their layer's unit.
struct UnitPart {
  ElementRange range;
  ByteCount bytes;            // gathered, with those of frozen ones
  std::int32_t matrices = 0;  // as the model's code has them
};

struct Unit {
  std::int32_t first_block;     // of its chunk: the root has both ends
  std::vector<UnitPart> parts;  // never empty

  std::int64_t elements() const;  // trained
  ByteCount bytes() const;
};

// A chunk's units, and which of them each block belongs to.
struct ChunkUnits {
  std::vector<Unit> units;
  std::vector<std::size_t> of_block;
};

std::vector<ChunkUnits> units_of(const RoleBuilder& builder);

// Whether the two ends of the model are one unit.
bool has_root(const Layout& layout);

// Whether whole gradients wait for a later reduction in the type that reduces them, or in the wider
// one of activations: FSDP's unsharded_accumulated_grad (torch/distributed/fsdp/_fully_shard,
// _fsdp_param.py). A fresh gradient is then added to them, beside which it lies meanwhile.
bool sums_wide_gradients(const Scenario& scenario);

}  // namespace stepcast
