// SPDX-License-Identifier: Apache-2.0
// What all kernels have in common whose time is their traffic to memory: the cost model prices them
// by these figures, whatever they compute (docs/cost-models.md, "Memory-bound").
#pragma once

#include <cstdint>
#include <tuple>
#include <utility>

namespace stepcast {

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
  std::int64_t launches = 1;  // kernels that it takes where chains are not fused

  std::int64_t rows() const { return elements / width; }

  static constexpr auto fields() {
    return std::tuple(
        std::pair("elements", &KernelSize::elements), std::pair("width", &KernelSize::width),
        std::pair("bytes", &KernelSize::bytes), std::pair("launches", &KernelSize::launches));
  }
};

// How a cost model and the fits of profiles see such an operation.
struct MemoryBound {
  MemoryBoundKind kind;
  bool backward;
  std::int64_t elements;
  std::int64_t width;
  double bytes;
  std::int64_t launches = 1;
};

}  // namespace stepcast
