// SPDX-License-Identifier: Apache-2.0
// Attention over a sequence that several ranks share runs these beside its kernels and messages
// (docs/context-parallel.md).
#pragma once

#include "core/data_type.h"
#include "operation/memory_bound.h"
#include "operation/optional_count.h"

namespace stepcast {

struct Rows;  // core/rows.h

// The tokens of one of the ranks that share a sequence, and heads as its attention has them.
struct ContextSizes {
  std::int64_t batch;
  std::int64_t rows;  // of a sequence
  std::int64_t heads, kv_heads;
  std::int64_t key_dim, value_dim;
  std::int64_t ranks;  // that exchange heads or tokens

  std::int64_t tokens() const { return batch * rows; }

  static Rows fields();
};

enum class ContextTensor { kQuery, kKey, kValue, kContext, kKeyValue };
const char* name_of(ContextTensor tensor);

// Between tensors of a rank's tokens with all heads, of all ranks' tokens with this rank's share of
// the heads, and messages, in which the part of each rank lies together.
enum class ContextMove {
  kPack,         // keys and values into one message, keys first
  kNarrow,       // sums of a ring's steps, in fp32, into the type of the model
  kSplitHeads,   // all heads into a message
  kJoinTokens,   // a message into all tokens in the order of the sequence
  kSplitTokens,  // all tokens into a message
  kJoinHeads     // a message into all heads
};
const char* name_of(ContextMove move);

// Brings tokens or heads into another order, or tensors into one message.
struct ContextCopy {
  ContextMove move;
  ContextTensor of;
  bool backward;
  ContextSizes sizes;
  OptionalCount copies;  // heads of keys for each one of the model, where that has fewer; 0: one
  DataType type;
  KernelSize size;

  static constexpr const char* kFamily = "context_copy";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kTranspose;
  static Rows fields();
};

// The result over some of the keys joins that over others, weighed by their sums of exponentials;
// backward, gradients of one tensor are added. It belongs to a step of a ring or to a piece, as
// struct Attention counts them.
struct PartialMerge {
  ContextTensor of;
  bool backward;
  ContextSizes sizes;
  bool is_first;
  OptionalCount ring_step, piece;
  DataType type;
  KernelSize size;

  static constexpr const char* kFamily = "partial_merge";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kDropoutAdd;
  static Rows fields();
};

}  // namespace stepcast
