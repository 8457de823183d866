// SPDX-License-Identifier: Apache-2.0
// The arrays of one attention, and what a choice of kernels depends on.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "core/data_type.h"
#include "kernels/cuda/attention.h"

namespace stepcast::cuda {

template <typename T>
struct ForwardArrays {
  Heads<const T> query, key, value;
  Heads<T> context;
  float* log_sum_exp;
};

template <typename T>
struct BackwardArrays {
  Heads<const T> query, key, value, context;
  const float* log_sum_exp;
  Heads<const T> context_gradient;
  Heads<T> query_gradient, key_gradient, value_gradient;
  float* row_products;
};

// Strides are in elements, from a token's heads to the next one's.
struct AttentionProblem {
  AttentionShape shape;
  DataType type;
  bool backward;
  bool aligned;  // all heads begin at 16-byte addresses
  std::int64_t query, key, value, context;
  std::int64_t context_gradient = 0, query_gradient = 0, key_gradient = 0, value_gradient = 0;

  using Key = std::array<std::int64_t, 18>;
  Key sort_key() const {
    return {shape.batch,
            shape.heads,
            shape.kv_heads,
            shape.sequence,
            shape.key_rows(),
            shape.head_dim,
            shape.causal ? 1 : 0,
            static_cast<std::int64_t>(type),
            backward ? 1 : 0,
            aligned ? 1 : 0,
            query,
            key,
            value,
            context,
            context_gradient,
            query_gradient,
            key_gradient,
            value_gradient};
  }
};

template <typename T>
constexpr DataType kAttentionType = std::is_same_v<T, float>  ? DataType::kFp32
                                    : std::is_same_v<T, Bf16> ? DataType::kBf16
                                                              : DataType::kFp16;

template <typename T>
bool begins_aligned(const AttentionShape& shape, const Heads<T>& heads) {
  constexpr std::int64_t kUnit = 16 / sizeof(T);
  return reinterpret_cast<std::uintptr_t>(heads.data) % 16 == 0 && heads.stride % kUnit == 0 &&
         shape.head_dim % kUnit == 0;
}

template <typename T>
AttentionProblem problem_of(const AttentionShape& shape, const ForwardArrays<T>& a) {
  const bool aligned = begins_aligned(shape, a.query) && begins_aligned(shape, a.key) &&
                       begins_aligned(shape, a.value) && begins_aligned(shape, a.context);
  return {shape,          kAttentionType<T>, false,          aligned,
          a.query.stride, a.key.stride,      a.value.stride, a.context.stride};
}

template <typename T>
AttentionProblem problem_of(const AttentionShape& shape, const BackwardArrays<T>& a) {
  const bool aligned =
      begins_aligned(shape, a.query) && begins_aligned(shape, a.key) &&
      begins_aligned(shape, a.value) && begins_aligned(shape, a.context) &&
      begins_aligned(shape, a.context_gradient) && begins_aligned(shape, a.query_gradient) &&
      begins_aligned(shape, a.key_gradient) && begins_aligned(shape, a.value_gradient);
  return {shape,
          kAttentionType<T>,
          true,
          aligned,
          a.query.stride,
          a.key.stride,
          a.value.stride,
          a.context.stride,
          a.context_gradient.stride,
          a.query_gradient.stride,
          a.key_gradient.stride,
          a.value_gradient.stride};
}

}  // namespace stepcast::cuda
