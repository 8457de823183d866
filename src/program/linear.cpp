// SPDX-License-Identifier: Apache-2.0
#include "program/linear.h"

#include "operation/steps.h"

namespace stepcast {

Linear::Linear(BlockBuilder& builder, const LinearNames& names, Parameter weight,
               std::int64_t tokens)
    : names_(names),
      outputs_(weight.rows),
      inputs_(weight.columns),
      tokens_(tokens > 0 ? tokens : builder.shape().tokens),
      four_bit_(builder.shape().mode == TrainingMode::kQlora) {
  if (four_bit_) weight.storage = WeightStorage::kFourBit;
  weight_ = builder.parameter(weight);
  const std::int64_t rank = builder.shape().lora_rank;
  if (rank == 0) return;
  const bool by_outputs = weight.cut == Cut::kRows;
  const bool packed = weight.parts[0] > 0;
  for (std::size_t i = 0; i < adapters_.size(); ++i) {
    Adapter& adapter = adapters_[i];
    adapter.outputs = packed ? weight.parts[i] : i == 0 ? weight.rows : 0;
    if (adapter.outputs == 0) continue;
    Parameter down{"adapter_down", rank, inputs_, by_outputs ? Cut::kNone : Cut::kColumns};
    Parameter up{"adapter_up", adapter.outputs, rank, by_outputs ? Cut::kRows : Cut::kNone,
                 Initial::kZeros};
    down.replicas = up.replicas = weight.replicas;
    adapter.down = builder.adapter(down);
    adapter.up = builder.adapter(up);
  }
}

// bitsandbytes dequantises the scales, then the weights, into a tensor for the product.
BufferId Linear::expand(BlockBuilder& builder) const {
  if (!four_bit_) return {};
  const Shape& shape = builder.shape();
  const std::int64_t elements = outputs_ * inputs_;
  const BufferId dense =
      builder.buffer("expanded_weight", elements, shape.type, MemoryCategory::kWorkspace);
  const double bytes = kFourBitBytes + static_cast<double>(shape.element);
  builder.add("expand_weight",
              Cast{CastSubject::kFourBitWeight, false, DataType::kInt8, shape.type,
                   builder.size(elements, 0, bytes, 2)},
              {}, {dense});
  builder.uses({weight_});
  return dense;
}

LinearOutput Linear::forward(BlockBuilder& builder, BufferId x, ParameterId bias) const {
  const Shape& shape = builder.shape();
  const double element = static_cast<double>(shape.element);
  LinearOutput out;
  out.y = builder.activation(names_.output, tokens_ * outputs_);
  const BufferId dense = expand(builder);
  builder.gemm(names_.layer, GemmRole::kForward, tokens_, outputs_, inputs_, {x, dense}, {out.y},
               bias.valid());
  builder.uses({weight_, bias});
  for (std::size_t i = 0; i < adapters_.size(); ++i) {
    const Adapter& adapter = adapters_[i];
    if (!adapter.down.valid()) continue;
    const std::int64_t wide = tokens_ * adapter.outputs;
    out.narrow[i] = builder.activation("adapter_narrow", tokens_ * shape.lora_rank);
    builder.gemm("adapter_down", GemmRole::kForward, tokens_, shape.lora_rank, inputs_, {x},
                 {out.narrow[i]});
    builder.uses({adapter.down});
    const BufferId up = builder.activation("adapter_wide", wide);
    builder.gemm("adapter_up", GemmRole::kForward, tokens_, adapter.outputs, shape.lora_rank,
                 {out.narrow[i]}, {up});
    builder.uses({adapter.up});
    // Scaled, then added.
    builder.add("adapter_add",
                AdapterAdd{false, shape.type,
                           adapter_steps(element).of(builder.size(wide, 0, 3 * element))},
                {up, out.y}, {out.y});
  }
  return out;
}

LinearGradient Linear::input_gradient(BlockBuilder& builder, BufferId gradient) const {
  const Shape& shape = builder.shape();
  const double element = static_cast<double>(shape.element);
  LinearGradient out;
  out.x = builder.activation(names_.output_gradient, tokens_ * inputs_);
  const BufferId dense = expand(builder);
  builder.gemm(names_.input_gradient, GemmRole::kInputGradient, tokens_, inputs_, outputs_,
               {gradient, dense}, {out.x});
  builder.uses({weight_});
  for (std::size_t i = 0; i < adapters_.size(); ++i) {
    const Adapter& adapter = adapters_[i];
    if (!adapter.down.valid()) continue;
    const std::int64_t wide = tokens_ * adapter.outputs;
    out.scaled[i] = builder.activation("adapter_wide_gradient", wide);
    builder.add("adapter_scale", AdapterScale{shape.type, builder.size(wide, 0, 2 * element)},
                {gradient}, {out.scaled[i]});
    out.narrow[i] = builder.activation("adapter_narrow_gradient", tokens_ * shape.lora_rank);
    builder.gemm("adapter_up_dgrad", GemmRole::kInputGradient, tokens_, shape.lora_rank,
                 adapter.outputs, {out.scaled[i]}, {out.narrow[i]});
    builder.uses({adapter.up});
    const BufferId part = builder.activation("adapter_input_gradient", tokens_ * inputs_);
    builder.gemm("adapter_down_dgrad", GemmRole::kInputGradient, tokens_, inputs_, shape.lora_rank,
                 {out.narrow[i]}, {part});
    builder.uses({adapter.down});
    builder.add("adapter_add",
                AdapterAdd{true, shape.type, builder.size(tokens_ * inputs_, 0, 3 * element)},
                {part, out.x}, {out.x});
  }
  return out;
}

void Linear::weight_gradient(BlockBuilder& builder, BufferId gradient, BufferId x,
                             const LinearOutput& saved, const LinearGradient& flowing) const {
  builder.weight_gradient(names_.weight_gradient, weight_, outputs_, inputs_, {gradient, x}, false,
                          tokens_);
  for (std::size_t i = 0; i < adapters_.size(); ++i) {
    const Adapter& adapter = adapters_[i];
    if (!adapter.down.valid()) continue;
    builder.weight_gradient("adapter_up_wgrad", adapter.up, adapter.outputs,
                            builder.shape().lora_rank, {flowing.scaled[i], saved.narrow[i]});
    builder.weight_gradient("adapter_down_wgrad", adapter.down, builder.shape().lora_rank, inputs_,
                            {flowing.narrow[i], x});
  }
}

}  // namespace stepcast
