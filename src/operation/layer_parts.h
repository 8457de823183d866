// SPDX-License-Identifier: Apache-2.0
// A decoder layer runs these between its products: norms, activations, rotations, sums. All of them
// are memory-bound.
#pragma once

#include "core/data_type.h"
#include "model/model.h"
#include "operation/memory_bound.h"

namespace stepcast {

struct Rows;  // core/rows.h

const char* name_of(Norm norm);  // "layer_norm"
const char* name_of(Mlp mlp);    // "swiglu"

// LayerNorm or RMSNorm of rows. Backward also sums the gradients of its weights over the rows.
struct Normalization {
  Norm norm;
  bool backward;
  bool bias;
  // It is of the sum of a branch (with its bias) and the residual stream, which it writes too;
  // backward the gradient of the stream is added to what it writes.
  bool residual;
  bool branch_bias;
  DataType type;
  DataType gradient;  // of the weights
  KernelSize size;

  static constexpr const char* kFamily = "norm";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kNorm;
  static Rows fields();
};

// RMSNorm of queries and keys inside the packed projection, whose rows also hold as many values as
// keys. It takes `query_norm` elements at a time of the queries and `key_norm` of the keys: a head,
// or all of them.
struct QueryKeyNorm {
  bool backward;
  std::int64_t query, key;  // elements of one token
  std::int64_t query_norm, key_norm;
  DataType type;
  DataType gradient;  // of the weights
  KernelSize size;

  static constexpr const char* kFamily = "query_key_norm";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kNorm;
  static Rows fields();
};

// GELU, or the gated form, with the bias of the projection before it where that has one. A row is
// what it writes for one token.
struct Activation {
  Mlp mlp;
  bool backward;
  bool bias;
  bool bias_gradient;  // backward also sums that of the bias over the rows
  DataType type;
  KernelSize size;

  static constexpr const char* kFamily = "activation";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kActivation;
  static Rows fields();
};

// Rotary position embedding of queries and keys (Su et al. 2021). Backward runs in place in the
// packed gradient, whose rows also hold as many values as keys.
struct Rotary {
  bool backward;
  std::int64_t sequence;
  std::int64_t heads, kv_heads, head_dim;
  DataType type;
  KernelSize size;

  static constexpr const char* kFamily = "rotary";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kRotary;
  static Rows fields();
};

// branch (+ bias) (dropped) + residual; backward the sum of two gradients.
struct ResidualAdd {
  bool backward;
  bool bias;
  bool dropout;  // it also writes the mask
  DataType type;
  KernelSize size;

  static constexpr const char* kFamily = "residual_add";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kDropoutAdd;
  static Rows fields();
};

// Dropout by itself: of the embeddings, of attention's probabilities, and backward of a branch.
struct Dropout {
  bool backward;
  DataType type;
  KernelSize size;

  static constexpr const char* kFamily = "dropout";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kDropoutAdd;
  static Rows fields();
};

// The output of an adapter, scaled, joins that of the layer beside it; backward the gradients of
// their common input.
struct AdapterAdd {
  bool backward;
  DataType type;
  KernelSize size;

  static constexpr const char* kFamily = "adapter_add";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kDropoutAdd;
  static Rows fields();
};

// The gradient of an adapter's output.
struct AdapterScale {
  DataType type;
  KernelSize size;

  static constexpr const char* kFamily = "adapter_scale";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kDropoutAdd;
  static constexpr bool backward = true;
  static Rows fields();
};

}  // namespace stepcast
