// SPDX-License-Identifier: Apache-2.0
// Kernels over flat arrays. T is float or double.
#pragma once

#include <cstdint>

#include "kernels/adamw.h"

namespace stepcast::cpu {

// out = branch + residual (+ bias by columns; may be null). out may be branch.
template <typename T>
void add_residual(const T* branch, const T* bias, const T* residual, T* out, std::int64_t rows,
                  std::int64_t columns);
template <typename T>
void add(const T* a, const T* b, T* out, std::int64_t count);
template <typename T>
void accumulate(const T* more, T* sum, std::int64_t count);
template <typename T>
void scale(T* data, T factor, std::int64_t count);
// weight -= rate * sign(gradient)
template <typename T>
void step_by_sign(const T* gradient, T* weight, T rate, std::int64_t count);
// Sums in double, by blocks: the same for any alignment.
template <typename T>
double sum_of_squares(const T* data, std::int64_t count);

// `step` counts from 1. Gradients are scaled by `factor` first.
template <typename T>
void adamw(const AdamW& settings, std::int64_t step, const T* gradient, T* weight, T* moment1,
           T* moment2, std::int64_t count, T factor = 1);

}  // namespace stepcast::cpu
