// SPDX-License-Identifier: Apache-2.0
// Bytes of parameters, gradients and optimizer states on one rank, by framework and ZeRO stage
// (Rajbhandari et al. 2020, section 5; docs/memory.md).
#pragma once

#include "layout/axis_group.h"
#include "memory/frozen_weights.h"

namespace stepcast {

struct Scenario;

struct StateBytes {
  ByteCount parameters = 0;
  ByteCount gradients = 0;
  ByteCount optimizer = 0;  // master weights and moments
  ByteCount total() const { return parameters + gradients + optimizer; }
  StateBytes& operator+=(const StateBytes& more);
};

// A checkpoint holds parameters, master weights and moments of what is trained, once.
ByteCount checkpoint_bytes(const Scenario& scenario);

// Ranks that share one copy of the states of parameters which `group` reduces: all of the group,
// or shard_group of them.
std::int64_t shard_ranks(const Scenario& scenario, AxisGroup group = AxisGroup::kData);

// `elements`: trained parameters of this rank before ZeRO. Shards are rounded up to whole elements.
StateBytes state_bytes(const Scenario& scenario, std::int64_t elements,
                       AxisGroup group = AxisGroup::kData);

// Bytes that products in fp8, or so many of them in fp4, need of their trained weights beside the
// 16-bit parameters, or instead of them (negative: they take less). 0 when units are gathered: each
// product casts its own.
ByteCount fp8_weight_bytes(const Scenario& scenario, std::int64_t elements, std::int64_t in_fp4 = 0,
                           std::int64_t tables = 0);

// Parameters that Muon updates, on a rank that has most of them.
struct MuonStates {
  AxisGroup group = AxisGroup::kData;
  std::int64_t elements = 0;  // before they are shared out
  std::int64_t updated = 0;   // with what pads shards of whole matrices
  std::int64_t moments = 0;   // a rank that works on matrices has the momentum of all of them
};

// The difference that Muon makes to them: one moment instead of two, buffers that pad the shards of
// whole matrices, and whole gradients of those that a shard touches.
StateBytes muon_bytes(const Scenario& scenario, const MuonStates& states);

// Bytes of moments that the optimizer keeps for each element: 8 of AdamW in fp32.
double moment_width(const Scenario& scenario);
// Adafactor keeps of each matrix the means of its rows and columns (Shazeer and Stern 2018, section
// 3), of a vector one number for each element. Shards are of whole rows.
ByteCount factored_bytes(const Scenario& scenario, std::int64_t rows, std::int64_t columns,
                         AxisGroup group);

// States that layout.offload takes away from a rank's device, and holds in host memory.
struct OffloadedStates {
  StateBytes saved;       // of state_bytes()
  ByteCount on_host = 0;  // with gradients, and copies that only the host has
};
OffloadedStates offloaded_states(const Scenario& scenario, std::int64_t elements, AxisGroup group);
// Shards of gradients of offloaded states go to the host as they are reduced.
bool leaves_as_reduced(const Scenario& scenario, AxisGroup group);
// Elements of a rank's shard that the host updates.
std::int64_t host_elements(const Scenario& scenario, std::int64_t elements, AxisGroup group);

// Old parameters and the momentum of outer steps, in fp32; they are sharded as the optimizer is.
ByteCount outer_bytes(const Scenario& scenario, std::int64_t elements, AxisGroup group);

// Flat copies of gradients that the update makes and reads (FrameworkRules::copies_flat_gradients).
ByteCount update_copy_bytes(const Scenario& scenario, std::int64_t elements,
                            AxisGroup group = AxisGroup::kData);

// Bytes of what is not trained, sharded where parameters are.
ByteCount frozen_bytes(const Scenario& scenario, const FrozenWeights& weights);

// Gradients of so many parameters that this rank keeps from one micro-batch to the next.
std::int64_t held_gradients(const Scenario& scenario, std::int64_t elements,
                            AxisGroup group = AxisGroup::kData);

// Elements that the optimizer of this rank updates.
std::int64_t optimizer_elements(const Scenario& scenario, std::int64_t elements,
                                AxisGroup group = AxisGroup::kData);

}  // namespace stepcast
