// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/expert_bias.h"

namespace stepcast::cpu {

template <typename T>
void add_weighed_bias(T* data, const T* bias, const T* weights, std::int64_t rows,
                      std::int64_t width) {
  for (std::int64_t row = 0; row < rows; ++row, data += width) {
    const T weight = weights == nullptr ? T(1) : weights[row];
    for (std::int64_t i = 0; i < width; ++i) data[i] += weight * bias[i];
  }
}

template <typename T>
void weigh_rows(const T* data, const T* weights, T* out, std::int64_t rows, std::int64_t width) {
  for (std::int64_t row = 0; row < rows; ++row, data += width, out += width) {
    for (std::int64_t i = 0; i < width; ++i) out[i] = weights[row] * data[i];
  }
}

template <typename T>
void bias_products(const T* data, const T* bias, T* out, std::int64_t rows, std::int64_t width) {
  for (std::int64_t row = 0; row < rows; ++row, data += width) {
    T sum = 0;
    for (std::int64_t i = 0; i < width; ++i) sum += data[i] * bias[i];
    out[row] = sum;
  }
}

#define STEPCAST_INSTANTIATE(T)                                                       \
  template void add_weighed_bias(T*, const T*, const T*, std::int64_t, std::int64_t); \
  template void weigh_rows(const T*, const T*, T*, std::int64_t, std::int64_t);       \
  template void bias_products(const T*, const T*, T*, std::int64_t, std::int64_t);
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(double)

}  // namespace stepcast::cpu
