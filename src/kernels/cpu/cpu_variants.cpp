// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cpu_variants.h"

#include <algorithm>

#include "kernels/cpu/experts.h"
#include "kernels/cpu/floats.h"
#include "kernels/cpu/latent_rotary.h"

namespace stepcast {

using cpu::floats;
using cpu::integers;

void CpuVariants::latent_rotary(const LatentShape& shape, Array query, Array up,
                                StridedRows rotary_key, Array key, Array value) {
  cpu::latent_rotary<float>(shape, floats(query), floats(up),
                            {floats(rotary_key.array), rotary_key.stride}, floats(key),
                            floats(value));
}

void CpuVariants::latent_rotary_backward(const LatentShape& shape, Array query_gradient,
                                         Array key_gradient, Array value_gradient,
                                         Array up_gradient, Array rotary_gradient) {
  cpu::latent_rotary_backward<float>(shape, floats(query_gradient), floats(key_gradient),
                                     floats(value_gradient), floats(up_gradient),
                                     floats(rotary_gradient));
}

void CpuVariants::copy_columns(StridedRows from, StridedRows to, std::int64_t rows,
                               std::int64_t columns) {
  const float* in = floats(from.array);
  float* out = floats(to.array);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::copy_n(in + row * from.stride, columns, out + row * to.stride);
  }
}

void CpuVariants::route(const RouterShape& shape, Array logits, Array choice, Array probabilities,
                        Array chosen) {
  cpu::route<float>(shape, floats(logits), integers(choice), floats(probabilities),
                    chosen.as<std::int8_t>());
}

void CpuVariants::route_backward(const RouterShape& shape, Array probabilities, Array chosen,
                                 Array weight_gradient, Array logits_gradient) {
  cpu::route_backward<float>(shape, floats(probabilities), chosen.as<const std::int8_t>(),
                             floats(weight_gradient), floats(logits_gradient));
}

void CpuVariants::choose_rows(const RouterShape& shape, Array probabilities, Array chosen,
                              Array token_of_row, Array weights) {
  cpu::choose_rows<float>(shape, floats(probabilities), chosen.as<const std::int8_t>(),
                          token_of_row.as<std::int64_t>(), floats(weights));
}

void CpuVariants::take_rows(Array from, Array index, Array to, std::int64_t rows,
                            std::int64_t width) {
  cpu::take_rows<float>(floats(from), integers(index), floats(to), rows, width);
}
void CpuVariants::put_rows(Array from, Array index, Array to, std::int64_t rows,
                           std::int64_t width) {
  cpu::put_rows<float>(floats(from), integers(index), floats(to), rows, width);
}
void CpuVariants::add_rows(Array from, Array index, Array to, std::int64_t rows,
                           std::int64_t targets, std::int64_t width) {
  cpu::add_rows<float>(floats(from), integers(index), floats(to), rows, targets, width);
}

void CpuVariants::expert_activation(ActivationKind kind, Array up, Array weights, Array out,
                                    std::int64_t rows, std::int64_t width) {
  cpu::expert_activation<float>(kind, floats(up), floats(weights), floats(out), rows, width);
}
void CpuVariants::expert_activation_backward(ActivationKind kind, Array up, Array weights,
                                             Array gradient, Array up_gradient,
                                             Array weight_gradient, std::int64_t rows,
                                             std::int64_t width) {
  cpu::expert_activation_backward<float>(kind, floats(up), floats(weights), floats(gradient),
                                         floats(up_gradient), floats(weight_gradient), rows, width);
}

}  // namespace stepcast
