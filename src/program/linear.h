// SPDX-License-Identifier: Apache-2.0
// A linear layer of the model: trained; or frozen, in 16 or 4 bits, with low-rank adapters beside
// it (Hu et al. 2021, arXiv 2106.09685; Dettmers et al. 2023, arXiv 2305.14314):
//   y = x W^T + scale (x A^T) B^T
// with A [rank, inputs] and B [outputs, rank] of each part of a packed layer. A 4-bit W is expanded
// before every product with it.
//
// Tensor parallelism cuts W, and of the adapter the half on the same side: B of a layer cut by
// outputs, A of one cut by inputs. The other half is whole on each rank and sees a part of the
// features: products stay partial sums like those of W, and share W's collectives; its gradients
// are summed once a step (arrange_update).
#pragma once

#include <array>

#include "program/block_builder.h"

namespace stepcast {

// Literals.
struct LinearNames {
  const char* layer;  // "mlp_up"
  const char* input_gradient;
  const char* weight_gradient;
  const char* output;           // of its buffer
  const char* output_gradient;  // of the input's gradient's buffer
};

// What the adapters of each part keep from forward, and between their two halves of backward.
struct LinearOutput {
  BufferId y;
  std::array<BufferId, 3> narrow;  // x A^T
};
struct LinearGradient {
  BufferId x;
  std::array<BufferId, 3> scaled;  // gradient of the adapter's output
  std::array<BufferId, 3> narrow;  // and of x A^T
};

class Linear {
 public:
  Linear() = default;
  // `weight`: [outputs, inputs] on this rank, cut by rows or columns. Adapters are reduced and
  // sharded over the ranks that hold the weight. `tokens`: rows of its input; 0: all of the
  // micro-batch.
  Linear(BlockBuilder& builder, const LinearNames& names, Parameter weight,
         std::int64_t tokens = 0);

  ParameterId weight() const { return weight_; }
  // `bias`, where valid, is added by the product.
  LinearOutput forward(BlockBuilder& builder, BufferId x, ParameterId bias = {}) const;
  LinearGradient input_gradient(BlockBuilder& builder, BufferId gradient) const;
  void weight_gradient(BlockBuilder& builder, BufferId gradient, BufferId x,
                       const LinearOutput& saved, const LinearGradient& flowing) const;

 private:
  struct Adapter {
    std::int64_t outputs = 0;
    ParameterId down, up;
  };
  BufferId expand(BlockBuilder& builder) const;

  LinearNames names_{};
  std::int64_t outputs_ = 0, inputs_ = 0, tokens_ = 0;
  bool four_bit_ = false;
  ParameterId weight_;
  std::array<Adapter, 3> adapters_{};  // by part; without parameters: none
};

}  // namespace stepcast
