// SPDX-License-Identifier: Apache-2.0
// All kernels whose time is their traffic to memory have these figures: the cost model prices them
// by these, whatever they compute (docs/cost-models.md, "Memory-bound").
#pragma once

#include <cstdint>

namespace stepcast {

struct Rows;  // core/rows.h

// The curves of profiles are kept by these kinds.
enum class MemoryBoundKind {
  kEmbedding,
  kNorm,
  kActivation,
  kDropoutAdd,
  kSoftmax,
  kRotary,
  kTranspose,
  kCrossEntropy,
  kReduction,
  kCast,
  kAccumulate,
  kFill,
  kOptimizer
};
inline constexpr int kMemoryBoundKinds = 13;
const char* name_of(MemoryBoundKind kind);

// The size of one memory-bound operation.
struct KernelSize {
  std::int64_t elements;
  std::int64_t width;         // elements of a row; 0 where rows do not matter
  double bytes;               // traffic to device memory: all reads and writes
  std::int64_t launches = 1;  // kernels that it takes in steps
  // Traffic in steps (operation/steps.h), with the launches; 0: it is the same. This project's own
  // kernels take no steps, so it is no field of an operation that runs.
  double bytes_in_steps = 0;

  std::int64_t rows() const { return elements / width; }

  static Rows fields();
};

// How a cost model and the fits of profiles see such an operation.
struct MemoryBound {
  MemoryBoundKind kind;
  bool backward;
  std::int64_t elements;
  std::int64_t width;
  double bytes;
  std::int64_t launches = 1;
  double bytes_in_steps = 0;
};

}  // namespace stepcast
