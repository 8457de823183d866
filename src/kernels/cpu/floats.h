// SPDX-License-Identifier: Apache-2.0
// The kernels of the CPU read and write these types.
#pragma once

#include "core/assert.h"
#include "kernels/array.h"

namespace stepcast::cpu {

inline float* floats(Array array) {
  STEPCAST_ASSERT(array.type == DataType::kFp32, "the CPU computes in fp32");
  return array.as<float>();
}
inline const std::int64_t* integers(Array array) { return array.as<std::int64_t>(); }

}  // namespace stepcast::cpu
