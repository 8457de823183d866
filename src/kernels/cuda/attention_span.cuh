// SPDX-License-Identifier: Apache-2.0
// Which keys a query may see at all, on the device.
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/shapes.h"

namespace stepcast::cuda {

// These two are key_rows() and offset() of a shape.
__device__ inline std::int64_t keys_of(const AttentionShape& shape) {
  return shape.keys > 0 ? shape.keys : shape.sequence;
}
__device__ inline std::int64_t offset_of(const AttentionShape& shape) {
  return shape.causal ? keys_of(shape) - shape.sequence : 0;
}
__device__ inline AttentionShape shape_of_keys(const AttentionShape& shape) {
  AttentionShape out = shape;
  out.sequence = keys_of(shape);
  return out;
}
// The first key that no query before `query` sees.
__device__ inline std::int64_t keys_end(const AttentionShape& shape, std::int64_t query) {
  const std::int64_t end = query + offset_of(shape), keys = keys_of(shape);
  return shape.causal && end < keys ? end : keys;
}
// The first query that sees `key`.
__device__ inline std::int64_t seen_from(const AttentionShape& shape, std::int64_t key) {
  const std::int64_t query = key - offset_of(shape);
  return shape.causal && query > 0 ? query : 0;
}

}  // namespace stepcast::cuda
