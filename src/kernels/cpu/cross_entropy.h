// SPDX-License-Identifier: Apache-2.0
// Cross-entropy over a slice of the vocabulary, in three parts that ranks combine between (Shoeybi
// et al. 2019, section 3): the largest logit, then the sum of exponentials and the target's logit.
// Columns from `valid` on are padding and take no part. T is float or double.
#pragma once

#include <cstdint>

#include "kernels/shapes.h"

namespace stepcast::cpu {

// Computes for each row the largest logit, the sum over columns of exp(logit - largest), and the
// target's logit, which is 0 where another slice has it. With valid = 0: -infinity, 0, 0.
template <typename T>
void cross_entropy(const LogitSlice& slice, const T* logits, const std::int64_t* targets,
                   std::int64_t rows, T* largest, T* sum, T* target);

// Replaces logits by (exp(logit - largest)/sum - [column is the target]) * scale; 0 in padding.
template <typename T>
void cross_entropy_backward(const LogitSlice& slice, T* logits, const std::int64_t* targets,
                            std::int64_t rows, const T* largest, const T* sum, T scale);

}  // namespace stepcast::cpu
