// SPDX-License-Identifier: Apache-2.0
// Gradients and states go through these beside the products: sums, casts, clipping, the update.
#pragma once

#include "core/data_type.h"
#include "operation/memory_bound.h"

namespace stepcast {

struct Rows;  // core/rows.h

// The sum of a gradient over its rows.
struct BiasGradient {
  DataType type;
  DataType gradient;  // of the bias
  KernelSize size;

  static constexpr const char* kFamily = "bias_gradient";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kReduction;
  static constexpr bool backward = true;
  static Rows fields();
};

// A micro-batch's gradient of a weight joins the main gradient.
struct Accumulate {
  DataType from, to;
  KernelSize size;

  static constexpr const char* kFamily = "accumulate";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kAccumulate;
  static constexpr bool backward = true;
  static Rows fields();
};

// The last four prepare products in fp8 or fp4: the largest element of a tensor, from which its
// scale follows, or that of its random Hadamard transform too; what a product reads; a weight.
enum class CastSubject {
  kLogits,
  kGradients,
  kParameters,
  kFourBitWeight,
  kScale,
  kTransformedScale,
  kOperand,
  kWeight,
  kStored  // an activation's input that waits for the backward
};
const char* name_of(CastSubject subject);

// A copy in another precision. Four-bit weights come two to a byte (int8), with their scales.
struct Cast {
  CastSubject subject;
  bool backward;
  DataType from, to;
  KernelSize size;

  static constexpr const char* kFamily = "cast";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kCast;
  static Rows fields();
};

// A sharded framework copies a unit's parameters behind their gather, or its gradients before their
// reduction, between one flat tensor and those of the parameters. This project's executor gathers
// and reduces in place: it has no kernel for it.
struct UnitCopy {
  bool backward;
  std::int64_t elements;
  double bytes;  // all reads and writes

  static constexpr const char* kFamily = "unit_copy";
  static Rows fields();
};

// The next six run over all gradients or states of a rank, once a step.
struct ZeroGradients {
  DataType type;
  KernelSize size;

  static constexpr const char* kFamily = "zero_gradients";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kFill;
  static constexpr bool backward = false;
  static Rows fields();
};

// Divides by the scale of the loss and looks for infinities (fp16).
struct UnscaleGradients {
  DataType type;
  KernelSize size;

  static constexpr const char* kFamily = "unscale_gradients";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kReduction;
  static constexpr bool backward = false;
  static Rows fields();
};

struct SquaredNorm {
  DataType type;
  KernelSize size;

  static constexpr const char* kFamily = "squared_norm";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kReduction;
  static constexpr bool backward = false;
  static Rows fields();
};

struct ClipGradients {
  DataType type;
  KernelSize size;

  static constexpr const char* kFamily = "clip_gradients";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kOptimizer;
  static constexpr bool backward = false;
  static Rows fields();
};

// AdamW on fp32 weights and moments. It may clip the gradients on their way, and write the weights
// in the model's precision.
struct OptimizerUpdate {
  DataType gradient;
  bool clips;
  bool rounds;
  KernelSize size;

  static constexpr const char* kFamily = "optimizer_update";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kOptimizer;
  static constexpr bool backward = false;
  static Rows fields();
};

// Biases of routers go one step against the sign of the load (RouterLoad), which no optimizer does
// (Wang et al. 2024, arXiv 2408.15664).
struct BalanceUpdate {
  DataType gradient;
  bool rounds;
  KernelSize size;

  static constexpr const char* kFamily = "balance_update";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kOptimizer;
  static constexpr bool backward = false;
  static Rows fields();
};

}  // namespace stepcast
