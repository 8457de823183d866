// SPDX-License-Identifier: Apache-2.0
#include "program/low_rank_adapters.h"

#include "operation/steps.h"

namespace stepcast {

Adapters::Adapters(BlockBuilder& builder, const Parameter& matrix, std::int64_t tokens)
    : inputs_(matrix.columns), tokens_(tokens), rank_(builder.shape().lora_rank) {
  if (rank_ == 0) return;
  const bool by_outputs = matrix.cut == Cut::kRows;
  const bool packed = matrix.parts[0] > 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    part.index = i;
    part.outputs = packed ? matrix.parts[i] : i == 0 ? matrix.rows : 0;
    if (part.outputs == 0) continue;
    Parameter down{"adapter_down", rank_, inputs_, by_outputs ? Cut::kNone : Cut::kColumns};
    Parameter up{"adapter_up", part.outputs, rank_, by_outputs ? Cut::kRows : Cut::kNone,
                 Initial::kZeros};
    down.replicas = up.replicas = matrix.replicas;
    part.down = builder.adapter(down);
    part.up = builder.adapter(up);
  }
}

template <class Visit>
void Adapters::each(const Visit& visit) const {
  for (const Part& part : parts_) {
    if (part.down.valid()) visit(part);
  }
}

PartBuffers Adapters::forward(BlockBuilder& builder, BufferId x, BufferId y) const {
  const Shape& shape = builder.shape();
  const double element = static_cast<double>(shape.element);
  PartBuffers out;
  each([&](const Part& part) {
    const std::int64_t wide = tokens_ * part.outputs;
    BufferId& narrow = out[part.index];
    narrow = builder.activation("adapter_narrow", tokens_ * rank_);
    builder.gemm("adapter_down", GemmRole::kForward, tokens_, rank_, inputs_, {x}, {narrow});
    builder.uses({part.down});
    const BufferId up = builder.activation("adapter_wide", wide);
    builder.gemm("adapter_up", GemmRole::kForward, tokens_, part.outputs, rank_, {narrow}, {up});
    builder.uses({part.up});
    // Scaled, then added.
    builder.add("adapter_add",
                AdapterAdd{false, shape.type,
                           adapter_steps(element).of(builder.size(wide, 0, 3 * element))},
                {up, y}, {y});
  });
  return out;
}

AdapterGradients Adapters::input_gradient(BlockBuilder& builder, BufferId y_gradient,
                                          BufferId x_gradient) const {
  const Shape& shape = builder.shape();
  const double element = static_cast<double>(shape.element);
  AdapterGradients out;
  each([&](const Part& part) {
    const std::int64_t wide = tokens_ * part.outputs;
    BufferId &scaled = out.scaled[part.index], &narrow = out.narrow[part.index];
    scaled = builder.activation("adapter_wide_gradient", wide);
    builder.add("adapter_scale", AdapterScale{shape.type, builder.size(wide, 0, 2 * element)},
                {y_gradient}, {scaled});
    narrow = builder.activation("adapter_narrow_gradient", tokens_ * rank_);
    builder.gemm("adapter_up_dgrad", GemmRole::kInputGradient, tokens_, rank_, part.outputs,
                 {scaled}, {narrow});
    builder.uses({part.up});
    const BufferId of_input = builder.activation("adapter_input_gradient", tokens_ * inputs_);
    builder.gemm("adapter_down_dgrad", GemmRole::kInputGradient, tokens_, inputs_, rank_, {narrow},
                 {of_input});
    builder.uses({part.down});
    builder.add("adapter_add",
                AdapterAdd{true, shape.type, builder.size(tokens_ * inputs_, 0, 3 * element)},
                {of_input, x_gradient}, {x_gradient});
  });
  return out;
}

void Adapters::weight_gradient(BlockBuilder& builder, BufferId x, const PartBuffers& narrow,
                               const AdapterGradients& gradients) const {
  each([&](const Part& part) {
    builder.weight_gradient("adapter_up_wgrad", part.up, part.outputs, rank_,
                            {gradients.scaled[part.index], narrow[part.index]});
    builder.weight_gradient("adapter_down_wgrad", part.down, rank_, inputs_,
                            {gradients.narrow[part.index], x});
  });
}

}  // namespace stepcast
