// SPDX-License-Identifier: Apache-2.0
// Kernels over flat arrays. T is float, Bf16 or Fp16; all arithmetic is in fp32.
#pragma once

#include <cstdint>

#include "kernels/adamw.h"
#include "kernels/cuda/half_types.h"
#include "kernels/cuda/stream.h"

namespace stepcast::cuda {

// out = branch + residual (+ bias by columns; may be null). out may be branch.
template <typename T>
void add_residual(const T* branch, const T* bias, const T* residual, T* out, std::int64_t rows,
                  std::int64_t columns, Stream stream);
template <typename T>
void add(const T* a, const T* b, T* out, std::int64_t count, Stream stream);
// Sum is T or float.
template <typename T, typename Sum>
void accumulate(const T* more, Sum* sum, std::int64_t count, Stream stream);
template <typename T>
void scale(T* data, float factor, std::int64_t count, Stream stream);
template <typename T>
void fill(T* data, float value, std::int64_t count, Stream stream);
// Casts between any two of float, Bf16, Fp16.
template <typename From, typename To>
void cast(const From* from, To* to, std::int64_t count, Stream stream);

// Writes into *sum, or adds to it, in double and always in one order. `workspace`: kSumBlocks
// numbers.
inline constexpr int kSumBlocks = 512;
template <typename T>
void sum_of_squares(const T* data, std::int64_t count, double* workspace, double* sum,
                    bool accumulate, Stream stream);
void narrow(const double* from, float* to, Stream stream);

// `step` counts from 1. Gradients are clipped first to where `squared_norm` (may be null) says, on
// the device. Master weight and moments are fp32; `rounded` receives the weight for the next step's
// products and may be null. Gradient and Rounded are float, or a 16-bit type.
template <typename Gradient, typename Rounded>
void adamw(const AdamW& settings, std::int64_t step, const float* squared_norm,
           const Gradient* gradient, float* weight, float* moment1, float* moment2,
           Rounded* rounded, std::int64_t count, Stream stream);

// weight -= rate * sign(gradient); `rounded` as above.
template <typename Gradient, typename Rounded>
void step_by_sign(const Gradient* gradient, float* weight, Rounded* rounded, float rate,
                  std::int64_t count, Stream stream);

}  // namespace stepcast::cuda
