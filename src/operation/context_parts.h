// SPDX-License-Identifier: Apache-2.0
// Attention over a sequence that several ranks share runs these beside its kernels and messages
// (docs/context-parallel.md). This project's executor has no kernels for them yet.
#pragma once

#include "core/data_type.h"
#include "operation/memory_bound.h"

namespace stepcast {

// Brings tokens or heads into another order, or tensors into one message.
struct ContextCopy {
  bool backward;
  DataType type;
  KernelSize size;

  static constexpr const char* kFamily = "context_copy";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kTranspose;
  static constexpr auto fields() {
    using C = ContextCopy;
    return std::tuple(std::pair("backward", &C::backward), std::pair("type", &C::type),
                      std::pair("size", &C::size));
  }
};

// The result over some of the keys joins that over others, weighed by their sums of exponentials;
// backward, gradients of one tensor are added.
struct PartialMerge {
  bool backward;
  DataType type;
  KernelSize size;

  static constexpr const char* kFamily = "partial_merge";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kDropoutAdd;
  static constexpr auto fields() {
    using P = PartialMerge;
    return std::tuple(std::pair("backward", &P::backward), std::pair("type", &P::type),
                      std::pair("size", &P::size));
  }
};

}  // namespace stepcast
