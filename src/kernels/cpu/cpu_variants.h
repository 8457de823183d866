// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/variant_kernels.h"

namespace stepcast {

// In fp32, on the calling thread.
class CpuVariants final : public VariantKernels {
 public:
  void latent_rotary(const LatentShape& shape, Array query, Array up, StridedRows rotary_key,
                     Array key, Array value) override;
  void latent_rotary_backward(const LatentShape& shape, Array query_gradient, Array key_gradient,
                              Array value_gradient, Array up_gradient,
                              Array rotary_gradient) override;
  void copy_columns(StridedRows from, StridedRows to, std::int64_t rows,
                    std::int64_t columns) override;

  void route(const RouterShape& shape, Array logits, Array choice, Array probabilities,
             Array chosen) override;
  void route_backward(const RouterShape& shape, Array probabilities, Array chosen,
                      Array weight_gradient, Array logits_gradient) override;
  void choose_rows(const RouterShape& shape, Array probabilities, Array chosen, Array token_of_row,
                   Array weights) override;
  void take_rows(Array from, Array index, Array to, std::int64_t rows, std::int64_t width) override;
  void put_rows(Array from, Array index, Array to, std::int64_t rows, std::int64_t width) override;
  void add_rows(Array from, Array index, Array to, std::int64_t rows, std::int64_t targets,
                std::int64_t width) override;
  void expert_activation(ActivationKind kind, Array up, Array weights, Array out, std::int64_t rows,
                         std::int64_t width) override;
  void expert_activation_backward(ActivationKind kind, Array up, Array weights, Array gradient,
                                  Array up_gradient, Array weight_gradient, std::int64_t rows,
                                  std::int64_t width) override;
};

}  // namespace stepcast
