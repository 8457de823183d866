// SPDX-License-Identifier: Apache-2.0
// The categories of what memory holds, and bytes by category.
#pragma once

#include <array>

#include "core/quantity.h"

namespace stepcast {

enum class MemoryCategory {
  kParameters,
  kGradients,
  kOptimizer,
  kActivations,
  kBuffers,
  kWorkspace,
  kOuter  // old parameters and the momentum of outer steps
};
inline constexpr int kMemoryCategories = 7;
const char* name_of(MemoryCategory category);

// Bytes by MemoryCategory.
using MemoryParts = std::array<ByteCount, kMemoryCategories>;
ByteCount total(const MemoryParts& parts);

}  // namespace stepcast
