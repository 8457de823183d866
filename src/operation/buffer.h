// SPDX-License-Identifier: Apache-2.0
// The arrays of a block.
#pragma once

#include <cstdint>

#include "core/data_type.h"
#include "core/id.h"
#include "core/quantity.h"
#include "operation/memory_parts.h"

namespace stepcast {

using BufferId = Id<struct BufferTag>;

// A weight or a vector of a block, as this rank holds it.
using ParameterId = Id<struct ParameterTag>;

struct Buffer {
  const char* name;  // a literal: programs have many buffers and few names
  std::int64_t elements;
  DataType type;
  MemoryCategory category;
  ByteCount size() const { return elements * size_of(type); }
};

}  // namespace stepcast
