// SPDX-License-Identifier: Apache-2.0
// Collectives: their kinds and purposes, and the one that is an operation of a block.
#pragma once

#include <cstdint>

#include "core/data_type.h"
#include "core/quantity.h"
#include "layout/axis_group.h"
#include "operation/collective_kind.h"
#include "operation/optional_count.h"

namespace stepcast {

struct Rows;  // core/rows.h

// A collective puts together activations or their gradients; one of the three figures of every
// token that the loss over a cut vocabulary needs; the largest elements of tensors, for scales of
// fp8; tokens on their way to experts and back, and what the router says of them; or the keys or
// the values of a sequence that ranks share, or their gradients.
enum class CollectivePurpose {
  kActivations,
  kLossMaximum,
  kLossTarget,
  kLossSum,
  kScale,
  kDispatch,
  kCombine,
  kRouting,
  kKeys,
  kValues
};
const char* name_of(CollectivePurpose purpose);

struct Collective {
  CollectiveKind kind;
  AxisGroup group;
  ByteCount bytes;
  DataType type;
  bool overlapped = false;  // pipelined with the GEMM beside it (overlap.tp)
  CollectivePurpose purpose = CollectivePurpose::kActivations;
  // All-to-all of rows of which so many are copies of one token: those that go to one rank, or to
  // ranks of one node across the network, are sent once (operation/distinct_destinations.h). 0:
  // every copy is sent.
  OptionalCount copies = {};
  // SMs whose loads and stores move such rows; 0: copy engines or an SM's own engine do.
  OptionalCount store_sms = {};
  // SMs that such a copy holds; 0: as many as HybridEP holds by default.
  OptionalCount held_sms = {};

  static constexpr const char* kFamily = "collective";
  static Rows fields();
};

}  // namespace stepcast
