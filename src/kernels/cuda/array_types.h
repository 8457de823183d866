// SPDX-License-Identifier: Apache-2.0
// From arrays that know their type to functions that are templates of it. Only for the sources of
// cuda_kernels.h.
#pragma once

#include "core/assert.h"
#include "kernels/arguments.h"
#include "kernels/cuda/half_types.h"
#include "kernels/strided.h"

namespace stepcast::cuda {

// Calls body(T()) with the array's type.
template <typename Body>
void with_type(Array array, const Body& body) {
  switch (array.type) {
    case DataType::kFp32:
      return body(float());
    case DataType::kBf16:
      return body(Bf16());
    case DataType::kFp16:
      return body(Fp16());
    default:
      STEPCAST_ASSERT(false, "kernels compute in fp32, bf16 and fp16");
  }
}

// Calls body(T(), G()), G being T or float.
template <typename Body>
void with_types(Array array, Array result, const Body& body) {
  with_type(array, [&](auto one) {
    if (result.type == array.type) return body(one, one);
    STEPCAST_ASSERT(result.type == DataType::kFp32, "sums have the type of their terms, or fp32");
    body(one, float());
  });
}

template <typename T>
Heads<const T> in(HeadArray heads, T) {
  return {heads.array.as<const T>(), heads.stride};
}
template <typename T>
Heads<T> out(HeadArray heads, T) {
  return {heads.array.as<T>(), heads.stride};
}
inline const std::int64_t* integers(Array array) { return array.as<const std::int64_t>(); }

}  // namespace stepcast::cuda
