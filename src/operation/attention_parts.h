// SPDX-License-Identifier: Apache-2.0
// Attention without its weights, softmax(Q K^T / sqrt(d)) V: as one fused kernel, or as the
// products, softmax and copies that the unfused form consists of.
#pragma once

#include "operation/memory_bound.h"
#include "operation/optional_count.h"
#include "operation/product.h"

namespace stepcast {

struct Rows;  // core/rows.h

// Fused (flash) attention. FLOPs forward: 4*batch*heads*query_length*key_length*head_dim, half of
// that when causal; backward 2.5 times as many. Values may be of another width than queries and
// keys, and a query may see no more than a window of the tokens before it, or those of its own
// chunk.
struct Attention {
  bool backward;
  std::int64_t batch;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t query_length;
  std::int64_t key_length;
  std::int64_t head_dim;
  bool causal;
  DataType type;
  OptionalCount value_dim = {};  // 0: head_dim
  OptionalCount window = {};     // 0: all tokens before
  OptionalCount chunk = {};      // 0: none
  // Learned logits of each head, which take part in its softmax and bring no value. Backward: their
  // gradients too.
  OptionalCount sinks = {};
  // Ranks that share a sequence compute so many steps of a ring, counted from 1, or pieces against
  // gathered keys. Which tokens meet depends on the rank (execute/run_context.cpp), not the work.
  OptionalCount ring_step = {}, piece = {};

  // Values as wide as keys, and nothing hidden but what comes later.
  bool is_plain() const {
    const bool same_width = !value_dim || value_dim.value == head_dim;
    return same_width && !window && !chunk;
  }

  static constexpr const char* kFamily = "attention";
  static Rows fields();
};

double flops_of(const Attention& attention);

// The sizes that all parts of unfused attention share; every token sees itself and those before.
struct AttentionSizes {
  std::int64_t batch;
  std::int64_t heads, kv_heads;
  std::int64_t sequence;
  std::int64_t head_dim;
  OptionalCount value_dim = {};  // 0: head_dim

  std::int64_t value_width() const { return value_dim ? value_dim.value : head_dim; }

  static Rows fields();
};

// One of the batched products, a small matrix for every head.
enum class AttentionProductKind {
  kScores,                 // Q K^T
  kContext,                // P V
  kProbabilitiesGradient,  // dC V^T
  kValueGradient,          // P^T dC
  kQueryGradient,          // dS K
  kKeyGradient             // dS^T Q
};
const char* name_of(AttentionProductKind kind);

struct AttentionProduct {
  AttentionProductKind kind;
  AttentionSizes sizes;
  DataType type;

  static constexpr const char* kFamily = "attention_product";
  static Rows fields();
};

// The batched GEMM that it is for a cost.
Gemm gemm_of(const AttentionProduct& product);

// The scale, the mask and the softmax of the scores, by rows.
struct AttentionSoftmax {
  bool backward;
  AttentionSizes sizes;
  DataType type;
  KernelSize size;

  static constexpr const char* kFamily = "attention_softmax";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kSoftmax;
  static Rows fields();
};

// Brings the heads of a token's context together; backward takes them apart.
struct ContextTranspose {
  bool backward;
  AttentionSizes sizes;
  DataType type;
  KernelSize size;

  static constexpr const char* kFamily = "context_transpose";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kTranspose;
  static Rows fields();
};

// Packs the gradients of queries, keys and values as the projection packs what they belong to.
struct QkvGather {
  AttentionSizes sizes;
  DataType type;
  KernelSize size;

  static constexpr const char* kFamily = "qkv_gather";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kTranspose;
  static constexpr bool backward = true;
  static Rows fields();
};

}  // namespace stepcast
