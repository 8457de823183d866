// SPDX-License-Identifier: Apache-2.0
// How a framework arranges one step around the blocks: one function per arrangement, each in a file
// of its own. lower() chooses between them by where gradients live (block_builder.h, GradientMode).
#pragma once

#include <cstdint>
#include <map>

#include "program/role_builder.h"

namespace stepcast {

// The blocks at the end of this role's step.
struct StepBlocks {
  BlockId zero_gradients;
  BlockId gradient_norm;           // with clipping
  BlockId update;                  // the optimizer proper
  ByteCount update_workspace = 0;  // beside its states
  HostUpdate host_update{};        // of no elements: nothing is offloaded
  BlockId returned = {};           // behind it
  // FSDP: casts so many gradients to the wider type that reduces them. Empty where they are reduced
  // as they are.
  std::map<std::int64_t, BlockId> casts = {};
  // FSDP where not every pass gathers and reduces: copies so many gradients into the flat tensor
  // that is reduced, and a gathered unit of so many bytes out of it.
  std::map<std::int64_t, BlockId> reduced_copies = {};
  std::map<ByteCount, BlockId> gathered_copies = {};
};

// Replicated parameters, pipeline by schedule, gradients reduced at the end or in buckets during
// the last backward; ZeRO-1 and ZeRO-2 shard the update. Megatron, DeepSpeed 0..2, DDP.
void arrange_replicated_step(RoleBuilder& builder, const StageOrder& order,
                             const StepBlocks& blocks);

// Sharded parameters, gathered unit by unit: FSDP and ZeRO-3.
void arrange_sharded_step(RoleBuilder& builder, const StageOrder& order, const StepBlocks& blocks);

// Gradients of the tied table and of tensor-parallel replicas, norm, clip, update.
void arrange_update(RoleBuilder& builder, const StepBlocks& blocks);

}  // namespace stepcast
