// SPDX-License-Identifier: Apache-2.0
// A linear layer of the model, y = x W^T, put together from three parts: how W is stored and made
// ready for a product (program/product_weight.h), how products read what goes into them
// (program/product_operands.h), and adapters beside a frozen W (program/low_rank_adapters.h).
#pragma once

#include <optional>

#include "program/block_builder.h"
#include "program/kept_products.h"
#include "program/low_rank_adapters.h"
#include "program/product_operands.h"

namespace stepcast {

// Literals.
struct LinearNames {
  const char* layer;  // "mlp_up"
  const char* input_gradient;
  const char* weight_gradient;
  const char* output;           // of its buffer
  const char* output_gradient;  // of the input's gradient's buffer
};

struct LinearOutput {
  BufferId y;
  BufferId apart;  // the outputs that have a buffer of their own
  BufferId last;   // those behind them, which then have one too
  // These hold `y` and `last` as the product made them, if they are kept and adapters add to them.
  BufferId bare, bare_last;
  AdapterOutputs adapters;
};
// Outputs that have buffers of their own: `apart`, and `last` behind them. Where torchtitan_op
// keeps the others, they `stay` as the product made them.
struct OutputSplit {
  std::int64_t apart = 0, last = 0;
  bool stay = false;
};
struct LinearGradient {
  BufferId x;
  AdapterGradients adapters;
};

class Linear;
// The product between the model's rows and those of its embedding table; none where they are of one
// width (OPT-350M has another). It has no adapters.
std::optional<Linear> table_projection(BlockBuilder& builder, const LinearNames& names,
                                       std::int64_t outputs, std::int64_t inputs);

class Linear {
 public:
  Linear() = default;
  // `weight`: [outputs, inputs] on this rank, cut by rows or columns. Adapters, where the layer has
  // some, are reduced and sharded over the ranks that hold the weight. `tokens`: rows of its input;
  // 0: all of the micro-batch.
  Linear(BlockBuilder& builder, const LinearNames& names, Parameter weight,
         bool has_adapters = true, std::int64_t tokens = 0);

  ParameterId weight() const { return weight_; }

  // In fp8 the backward casts the input again: the norm before makes it once more (Transformer
  // Engine's save_original_input, which Megatron-LM sets where it recomputes that norm).
  void cast_input_again(bool again) { casts_again_ = again; }

  // Forward: the layer begins a region that is cut by tensor parallelism, or ends it. `keeps`: the
  // backward reads what is made here.
  LinearInput enter(BlockBuilder& builder, const char* name, BufferId x, bool keeps) const;
  LinearInput take(BlockBuilder& builder, BufferId x, bool keeps) const;
  // `bias`, where valid, is added by the product.
  LinearOutput forward(BlockBuilder& builder, const LinearInput& input, ParameterId bias = {},
                       const OutputSplit& split = {}) const;
  // Makes `dropped` of the outputs once more: none, all, or those that are apart, by a product of
  // their own. They are the second part of the weight (Parameter::parts), which stands for either:
  // halves of a gated MLP are equal. If the output is not `read`, backward has but what it reads of
  // adapters.
  LinearOutput make_again(BlockBuilder& builder, const LinearInput& input,
                          const LinearOutput& saved, ParameterId bias, std::int64_t dropped,
                          bool read = true) const;
  // How outputs lie where torchtitan_op makes `dropped` of them again.
  OutputSplit split(const KeptProducts& kept, std::int64_t dropped, std::int64_t last = 0) const {
    if (!kept.chooses()) return {};
    return {dropped < outputs_ ? dropped : 0, last, dropped < outputs_};
  }
  // All outputs, unless the product with this number is kept.
  std::int64_t dropped(const KeptProducts& kept, std::int64_t number) const {
    return kept.has(number) ? 0 : outputs_;
  }

  // Backward: the gradient of the output, of a layer that ends a region or of one that begins it.
  LinearInput leave_backward(BlockBuilder& builder, const char* name, BufferId gradient) const;
  LinearInput take_gradient(BlockBuilder& builder, BufferId gradient) const;
  // Gathers once more what enter() gathered, for the weight gradient.
  LinearInput gather_again(BlockBuilder& builder, const char* name, const LinearInput& saved) const;
  // The input where what the layer took or entered with was made once more.
  LinearInput renewed(const LinearInput& saved, BufferId x) const;
  // `saved`: of forward(), where the layer may have adapters.
  LinearGradient input_gradient(BlockBuilder& builder, const LinearInput& gradient,
                                const LinearOutput& saved = {}) const;
  void weight_gradient(BlockBuilder& builder, const LinearInput& gradient, const LinearInput& input,
                       const LinearOutput& saved, const LinearGradient& flowing) const;

 private:
  OperandRequest of_input(BufferId x, bool keeps = true) const;
  OperandRequest of_gradient(BufferId gradient) const;
  void multiply(BlockBuilder& builder, const LinearInput& input, ParameterId bias,
                const OutputSplit& split, LinearOutput& out) const;
  void stand_apart(BlockBuilder& builder, LinearOutput& out) const;
  static Adapters::Sums sums_of(const LinearOutput& out);

  LinearNames names_{};
  std::int64_t outputs_ = 0, inputs_ = 0, tokens_ = 0;
  const OperandForm* form_ = nullptr;
  bool trained_ = false, casts_again_ = false;
  ParameterId weight_;
  Adapters adapters_;
};

}  // namespace stepcast
