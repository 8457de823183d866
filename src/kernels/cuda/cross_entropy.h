// SPDX-License-Identifier: Apache-2.0
// Cross-entropy over a slice of the vocabulary in three parts, as on the CPU. T is float, Bf16 or
// Fp16; the parts are fp32.
#pragma once

#include <cstdint>

#include "kernels/cuda/half_types.h"
#include "kernels/cuda/stream.h"
#include "kernels/shapes.h"

namespace stepcast::cuda {

template <typename T>
void cross_entropy(const LogitSlice& slice, const T* logits, const std::int64_t* targets,
                   std::int64_t rows, float* largest, float* sum, float* target, Stream stream);

// Replaces logits by (exp(logit - largest)/sum - [column is the target]) * scale; 0 in padding.
template <typename T>
void cross_entropy_backward(const LogitSlice& slice, T* logits, const std::int64_t* targets,
                            std::int64_t rows, const float* largest, const float* sum, float scale,
                            Stream stream);

// sum[i] *= exp(local_largest[i] - largest[i]): to the largest logit of all slices.
void rescale_sums(const float* local_largest, const float* largest, float* sum, std::int64_t rows,
                  Stream stream);
// *total += sum over rows of log(sum) + largest - target, always in the same order.
void add_loss(const float* largest, const float* sum, const float* target, std::int64_t rows,
              double* total, Stream stream);

}  // namespace stepcast::cuda
