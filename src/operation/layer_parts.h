// SPDX-License-Identifier: Apache-2.0
// A decoder layer runs these between its products: norms, activations, rotations, sums. All of them
// are memory-bound.
#pragma once

#include "core/data_type.h"
#include "model/model.h"
#include "operation/memory_bound.h"

namespace stepcast {

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
  static constexpr auto fields() {
    using N = Normalization;
    return std::tuple(std::pair("norm", &N::norm), std::pair("backward", &N::backward),
                      std::pair("bias", &N::bias), std::pair("residual", &N::residual),
                      std::pair("branch_bias", &N::branch_bias), std::pair("type", &N::type),
                      std::pair("gradient", &N::gradient), std::pair("size", &N::size));
  }
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
  static constexpr auto fields() {
    using Q = QueryKeyNorm;
    return std::tuple(std::pair("backward", &Q::backward), std::pair("query", &Q::query),
                      std::pair("key", &Q::key), std::pair("query_norm", &Q::query_norm),
                      std::pair("key_norm", &Q::key_norm), std::pair("type", &Q::type),
                      std::pair("gradient", &Q::gradient), std::pair("size", &Q::size));
  }
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
  static constexpr auto fields() {
    using A = Activation;
    return std::tuple(std::pair("mlp", &A::mlp), std::pair("backward", &A::backward),
                      std::pair("bias", &A::bias), std::pair("bias_gradient", &A::bias_gradient),
                      std::pair("type", &A::type), std::pair("size", &A::size));
  }
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
  static constexpr auto fields() {
    using R = Rotary;
    return std::tuple(std::pair("backward", &R::backward), std::pair("sequence", &R::sequence),
                      std::pair("heads", &R::heads), std::pair("kv_heads", &R::kv_heads),
                      std::pair("head_dim", &R::head_dim), std::pair("type", &R::type),
                      std::pair("size", &R::size));
  }
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
  static constexpr auto fields() {
    using R = ResidualAdd;
    return std::tuple(std::pair("backward", &R::backward), std::pair("bias", &R::bias),
                      std::pair("dropout", &R::dropout), std::pair("type", &R::type),
                      std::pair("size", &R::size));
  }
};

// Dropout by itself: of the embeddings, of attention's probabilities, and backward of a branch.
struct Dropout {
  bool backward;
  DataType type;
  KernelSize size;

  static constexpr const char* kFamily = "dropout";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kDropoutAdd;
  static constexpr auto fields() {
    return std::tuple(std::pair("backward", &Dropout::backward), std::pair("type", &Dropout::type),
                      std::pair("size", &Dropout::size));
  }
};

// The output of an adapter, scaled, joins that of the layer beside it; backward the gradients of
// their common input.
struct AdapterAdd {
  bool backward;
  DataType type;
  KernelSize size;

  static constexpr const char* kFamily = "adapter_add";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kDropoutAdd;
  static constexpr auto fields() {
    return std::tuple(std::pair("backward", &AdapterAdd::backward),
                      std::pair("type", &AdapterAdd::type), std::pair("size", &AdapterAdd::size));
  }
};

// The gradient of an adapter's output.
struct AdapterScale {
  DataType type;
  KernelSize size;

  static constexpr const char* kFamily = "adapter_scale";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kDropoutAdd;
  static constexpr bool backward = true;
  static constexpr auto fields() {
    return std::tuple(std::pair("type", &AdapterScale::type),
                      std::pair("size", &AdapterScale::size));
  }
};

}  // namespace stepcast
