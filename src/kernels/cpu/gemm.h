// SPDX-License-Identifier: Apache-2.0
// Matrix products, row-major: C[m,n] = op(A)[m,k] op(B)[k,n] + (accumulate ? C : 0).
// Single-threaded: a rank is one core. T is float or double.
#pragma once

#include <cstdint>

#include "kernels/strided.h"

namespace stepcast::cpu {

template <typename T>
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<const T> a, Matrix<const T> b,
          Matrix<T> c, bool accumulate);

// data[r, c] += bias[c].
template <typename T>
void add_bias(T* data, const T* bias, std::int64_t rows, std::int64_t columns);

// gradient[c] (+)= sum over rows of data[r, c].
template <typename T>
void bias_gradient(const T* data, T* gradient, std::int64_t rows, std::int64_t columns,
                   bool accumulate);

}  // namespace stepcast::cpu
