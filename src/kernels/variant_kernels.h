// SPDX-License-Identifier: Apache-2.0
// Kernels of layers that are no plain attention and MLP (docs/moe.md): latent attention, prediction
// modules and mixtures of experts. A device without them runs no model that has such layers
// (program/executable.h). Formulas are those of the functions of the same names in kernels/cpu.
#pragma once

#include <cstdint>

#include "kernels/array.h"
#include "kernels/shapes.h"

namespace stepcast {

// A matrix whose rows may be parts of longer ones.
struct StridedRows {
  Array array;
  std::int64_t stride;  // elements from one row to the next
};

class VariantKernels {
 public:
  virtual ~VariantKernels() = default;

  virtual void latent_rotary(const LatentShape& shape, Array query, Array up,
                             StridedRows rotary_key, Array key, Array value) = 0;
  virtual void latent_rotary_backward(const LatentShape& shape, Array query_gradient,
                                      Array key_gradient, Array value_gradient, Array up_gradient,
                                      Array rotary_gradient) = 0;
  virtual void copy_columns(StridedRows from, StridedRows to, std::int64_t rows,
                            std::int64_t columns) = 0;

  // Choices, tokens of rows and indices are int64, what was chosen int8.
  virtual void route(const RouterShape& shape, Array logits, Array choice, Array probabilities,
                     Array chosen) = 0;
  virtual void route_backward(const RouterShape& shape, Array probabilities, Array chosen,
                              Array weight_gradient, Array logits_gradient) = 0;
  virtual void choose_rows(const RouterShape& shape, Array probabilities, Array chosen,
                           Array token_of_row, Array weights) = 0;
  virtual void take_rows(Array from, Array index, Array to, std::int64_t rows,
                         std::int64_t width) = 0;
  virtual void put_rows(Array from, Array index, Array to, std::int64_t rows,
                        std::int64_t width) = 0;
  virtual void add_rows(Array from, Array index, Array to, std::int64_t rows, std::int64_t targets,
                        std::int64_t width) = 0;
  virtual void expert_activation(ActivationKind kind, Array up, Array weights, Array out,
                                 std::int64_t rows, std::int64_t width) = 0;
  virtual void expert_activation_backward(ActivationKind kind, Array up, Array weights,
                                          Array gradient, Array up_gradient, Array weight_gradient,
                                          std::int64_t rows, std::int64_t width) = 0;
};

}  // namespace stepcast
