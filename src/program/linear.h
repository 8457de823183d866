// SPDX-License-Identifier: Apache-2.0
// A linear layer of the model: trained; or frozen, in 16 or 4 bits or in fp8, with low-rank
// adapters beside it (Hu et al. 2021, arXiv 2106.09685; Dettmers et al. 2023, arXiv 2305.14314):
//   y = x W^T + scale (x A^T) B^T
// with A [rank, inputs] and B [outputs, rank] of each part of a packed layer. A 4-bit W is expanded
// before every product with it.
//
// Tensor parallelism cuts W, and of the adapter the half on the same side: B of a layer cut by
// outputs, A of one cut by inputs. The other half is whole on each rank and sees a part of the
// features: products stay partial sums like those of W, and share W's collectives; its gradients
// are summed once a step (arrange_update).
//
// In fp8 the three products with W read copies of their operands (program/fp8_operands.h), and what
// tensor parallelism gathers is such a copy. Adapters read 16 bits: where there are some, 16 bits
// are gathered, and each rank casts all of it.
#pragma once

#include <array>

#include "program/block_builder.h"
#include "program/fp8_operands.h"

namespace stepcast {

// Literals.
struct LinearNames {
  const char* layer;  // "mlp_up"
  const char* input_gradient;
  const char* weight_gradient;
  const char* output;           // of its buffer
  const char* output_gradient;  // of the input's gradient's buffer
};

// What goes into the layer. Without fp8 `operand` is `x` itself.
struct LinearInput {
  BufferId x;       // in the model's type; invalid where nothing reads it
  Operand operand;  // of the product with W
  BufferId share;   // of this rank, where tensor ranks gather it again for the weight gradient
};

// What the adapters of each part keep from forward, and between their two halves of backward.
struct LinearOutput {
  BufferId y;
  BufferId apart;                  // the outputs that have a buffer of their own
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
  // `weight`: [outputs, inputs] on this rank, cut by rows or columns. Adapters, where the layer has
  // some, are reduced and sharded over the ranks that hold the weight. `tokens`: rows of its input;
  // 0: all of the micro-batch.
  Linear(BlockBuilder& builder, const LinearNames& names, Parameter weight,
         bool has_adapters = true, std::int64_t tokens = 0);

  ParameterId weight() const { return weight_; }

  // Forward: the layer begins a region that is cut by tensor parallelism, or ends it. `keeps`: the
  // backward reads what is made here.
  LinearInput enter(BlockBuilder& builder, const char* name, BufferId x, bool keeps) const;
  LinearInput take(BlockBuilder& builder, BufferId x, bool keeps) const;
  // `bias`, where valid, is added by the product. `apart`: how many of the outputs go into a buffer
  // of their own, which backward makes again.
  LinearOutput forward(BlockBuilder& builder, const LinearInput& input, ParameterId bias = {},
                       std::int64_t apart = 0) const;
  // Those once more: a product of their own.
  BufferId make_apart(BlockBuilder& builder, const LinearInput& input, ParameterId bias,
                      std::int64_t apart) const;

  // Backward: the gradient of the output, of a layer that ends a region or of one that begins it.
  LinearInput leave_backward(BlockBuilder& builder, const char* name, BufferId gradient) const;
  LinearInput take_gradient(BlockBuilder& builder, BufferId gradient) const;
  // What enter() gathered, for the weight gradient.
  LinearInput gather_again(BlockBuilder& builder, const char* name, const LinearInput& saved) const;
  // The same where what the layer took or entered with was made once more. Copies in fp8 are kept.
  LinearInput renewed(const LinearInput& saved, BufferId x) const;
  LinearGradient input_gradient(BlockBuilder& builder, const LinearInput& gradient) const;
  void weight_gradient(BlockBuilder& builder, const LinearInput& gradient, const LinearInput& input,
                       const LinearOutput& saved, const LinearGradient& flowing) const;

 private:
  struct Adapter {
    std::int64_t outputs = 0;
    ParameterId down, up;
  };
  bool has_adapters() const;
  BufferId dense_weight(BlockBuilder& builder, bool backward) const;
  BufferId expand(BlockBuilder& builder) const;
  BufferId cast_weight(BlockBuilder& builder, bool backward) const;
  Operand cast(BlockBuilder& builder, BufferId x, std::int64_t width, bool backward,
               bool by_columns) const;

  LinearNames names_{};
  std::int64_t outputs_ = 0, inputs_ = 0, tokens_ = 0;
  bool four_bit_ = false, in_fp8_ = false, trained_ = false;
  ParameterId weight_;
  std::array<Adapter, 3> adapters_{};  // by part; without parameters: none
};

}  // namespace stepcast
