// SPDX-License-Identifier: Apache-2.0
// A layer of experts runs these: the router, the moves of tokens between their own order and that
// of the experts, the experts' products and activation (docs/moe.md).
#pragma once

#include "core/data_type.h"
#include "model/model.h"
#include "operation/memory_bound.h"
#include "operation/product.h"

namespace stepcast {

struct Rows;  // core/rows.h

// The products of all experts of a rank, each with a weight of its own, in one kernel. `rows`:
// tokens of all experts together. Forward y = x W^T, input gradient dx = dy W, weight gradient
// dW = dy^T x, with W [outputs, inputs].
struct GroupedGemm {
  GemmRole role;
  std::int64_t experts;
  std::int64_t rows;
  std::int64_t outputs, inputs;
  DataType input;
  DataType output;
  bool accumulate;
  bool bias = false;

  static constexpr const char* kFamily = "grouped_gemm";
  static Rows fields();
};

double flops_of(const GroupedGemm& grouped);

// Makes as many products of the mean size of them: `batch` is the number of experts.
Gemm mean_gemm_of(const GroupedGemm& grouped);

// Scores of all experts from the logits of a token, the choice of the best and the loss that
// balances them. Backward: the gradient of the logits. A row is one token.
struct RouterScores {
  bool backward;
  std::int64_t top_k;
  DataType type;
  KernelSize size;

  static constexpr const char* kFamily = "router_scores";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kSoftmax;
  static Rows fields();
};

// Rows of tokens in another order. Permute: one copy of a token for each of its experts, in the
// experts' order. Unpermute: the sum of a token's copies. Sort: the rows that came rank by rank,
// expert by expert, or back.
enum class TokenMove { kPermute, kUnpermute, kSort };
const char* name_of(TokenMove move);

struct TokenPermutation {
  TokenMove move;
  bool backward;
  DataType type;
  KernelSize size;

  static constexpr const char* kFamily = "token_permutation";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kTranspose;
  static Rows fields();
};

// The activation of experts, which multiplies each row by its routing weight. Backward: the
// gradient of the weights too.
struct ExpertActivation {
  Mlp mlp;
  bool backward;
  DataType type;
  KernelSize size;

  static constexpr const char* kFamily = "expert_activation";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kActivation;
  static Rows fields();
};

// The bias of a row's expert joins the experts' output, times the row's routing weight. Backward:
// the gradients of the weights. That of the bias is a BiasGradient, which weighs rows likewise.
struct ExpertBias {
  bool backward;
  DataType type;
  KernelSize size;

  static constexpr const char* kFamily = "expert_bias";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kDropoutAdd;
  static Rows fields();
};

// By how much more tokens than the mean chose each expert. It stands where the gradient of the
// router's bias would, and is summed over ranks and micro-batches with the gradients.
struct RouterLoad {
  DataType gradient;
  KernelSize size;

  static constexpr const char* kFamily = "router_load";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kReduction;
  static constexpr bool backward = true;
  static Rows fields();
};

// The shared expert's output times a weight for each token, the sigmoid of a product with its
// input.
struct SharedGate {
  bool backward;
  DataType type;
  KernelSize size;

  static constexpr const char* kFamily = "shared_gate";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kActivation;
  static Rows fields();
};

// The host waits for figures of the device: how many tokens go to each rank, without which it
// cannot launch what comes next. No kernel.
struct HostRead {
  std::int64_t figures;

  static constexpr const char* kFamily = "host_read";
  static Rows fields();
};

}  // namespace stepcast
