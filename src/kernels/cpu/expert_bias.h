// SPDX-License-Identifier: Apache-2.0
// The bias of an expert at its rows (docs/moe.md, "Biases"). T is float or double.
#pragma once

#include <cstdint>

namespace stepcast::cpu {

// data[r] += weights[r] * bias; without weights each row counts once.
template <typename T>
void add_weighed_bias(T* data, const T* bias, const T* weights, std::int64_t rows,
                      std::int64_t width);
// out[r] = weights[r] * data[r]: the gradient of the bias is the sum of these.
template <typename T>
void weigh_rows(const T* data, const T* weights, T* out, std::int64_t rows, std::int64_t width);
// out[r] = the product of data[r] and the bias: of gradients, what the bias adds to that of the
// row's weight.
template <typename T>
void bias_products(const T* data, const T* bias, T* out, std::int64_t rows, std::int64_t width);

}  // namespace stepcast::cpu
