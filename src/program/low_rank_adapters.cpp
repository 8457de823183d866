// SPDX-License-Identifier: Apache-2.0
#include "program/low_rank_adapters.h"

#include "operation/steps.h"

namespace stepcast {

Adapters::Adapters(BlockBuilder& builder, const Parameter& matrix, std::int64_t tokens)
    : inputs_(matrix.columns), tokens_(tokens), rank_(builder.shape().lora_rank) {
  if (rank_ == 0) return;
  const bool gathers = matrix.cut == Cut::kRows && builder.shape().sequence_parallel;
  own_rows_ = gathers ? builder.shape().rows : tokens_;
  const bool packed = matrix.parts[0] > 0 && !builder.rules().adapts_packed_matrices;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    part.index = i;
    part.outputs = packed ? matrix.parts[i] : i == 0 ? matrix.rows : 0;
    if (part.outputs > 0) declare(builder, matrix, part);
  }
}

Adapters Adapters::of_experts(BlockBuilder& builder, const Parameter& matrix, std::int64_t experts,
                              std::int64_t rows) {
  Adapters out;
  out.rank_ = builder.shape().lora_rank;
  if (out.rank_ == 0) return out;
  out.experts_ = experts;
  out.inputs_ = matrix.columns;
  out.tokens_ = out.own_rows_ = rows;
  Part& all = out.parts_.front();
  all.outputs = matrix.rows;
  out.declare(builder, matrix, all);
  return out;
}

void Adapters::declare(BlockBuilder& builder, const Parameter& matrix, Part& part) {
  const Cut by_inputs = matrix.cut == Cut::kColumns ? Cut::kColumns : Cut::kNone;
  const Cut by_outputs = matrix.cut == Cut::kRows ? Cut::kRows : Cut::kNone;
  Parameter down{"adapter_down", experts_ * rank_, inputs_, by_inputs};
  Parameter up{"adapter_up", experts_ * part.outputs, rank_, by_outputs, Initial::kZeros};
  down.replicas = up.replicas = matrix.replicas;
  down.copies = up.copies = experts_;
  part.down = builder.adapter(down);
  part.up = builder.adapter(up);
}

// No trainer drops inputs of grouped adapters (NeMo AutoModel, _peft/lora_experts.py).
bool Adapters::drops(const BlockBuilder& builder) const {
  return builder.shape().drops_adapter_inputs && experts_ == 1;
}

void Adapters::multiply(BlockBuilder& builder, const char* name, GemmRole role,
                        std::int64_t outputs, std::int64_t inputs, BufferId from,
                        BufferId to) const {
  if (experts_ > 1) {
    const Shape& shape = builder.shape();
    builder.add(
        name,
        GroupedGemm{role, experts_, tokens_, outputs, inputs, shape.product, shape.type, false},
        {from}, {to});
  } else if (role == GemmRole::kForward) {
    builder.gemm(name, role, tokens_, outputs, inputs, {from}, {to});
  } else {
    builder.gemm(name, role, tokens_, inputs, outputs, {from}, {to});
  }
}

void Adapters::weight_gradient(BlockBuilder& builder, const char* name, ParameterId weight,
                               std::int64_t outputs, std::int64_t inputs, BufferId gradient,
                               BufferId x) const {
  if (experts_ > 1) {
    const Shape& shape = builder.shape();
    builder.weight_gradient(name, weight,
                            GroupedGemm{GemmRole::kWeightGradient, experts_, tokens_, outputs,
                                        inputs, shape.product, shape.type, false},
                            {gradient, x});
  } else {
    builder.weight_gradient(name, weight, outputs, inputs, {gradient, x}, false, false, tokens_);
  }
}

template <class Visit>
void Adapters::each(const Visit& visit) const {
  for (const Part& part : parts_) {
    if (part.down.valid()) visit(part);
  }
}

// A kernel of its own, which reads and writes them and reads or writes the mask.
Dropout Adapters::dropout(const BlockBuilder& builder, bool backward) const {
  const Shape& shape = builder.shape();
  const double bytes = 2 * static_cast<double>(shape.element) + 1;
  return {backward, shape.type, builder.size(own_rows_ * inputs_, 0, bytes)};
}

AdapterOutputs Adapters::write(BlockBuilder& builder, BufferId x, const Sums& sums,
                               const AdapterOutputs* saved,
                               const std::array<bool, 3>& stays) const {
  const Shape& shape = builder.shape();
  const double element = static_cast<double>(shape.element);
  AdapterOutputs out;
  each([&](const Part& part) {
    const std::int64_t wide = tokens_ * part.outputs;
    BufferId seen = x;
    if (drops(builder)) {
      seen = out.dropped[part.index] = builder.activation("adapter_input", own_rows_ * inputs_);
      BufferId& mask = out.mask[part.index];
      mask = builder.buffer("adapter_mask", own_rows_ * inputs_, DataType::kInt8);
      builder.add("adapter_dropout", dropout(builder, false), {x}, {seen, mask});
    }
    BufferId &narrow = out.narrow[part.index], &up = out.wide[part.index];
    const bool again = saved != nullptr;
    if (again && !stays[part.index]) {
      narrow = saved->narrow[part.index];
    } else {
      narrow = builder.activation("adapter_narrow", tokens_ * rank_);
      multiply(builder, "adapter_down", GemmRole::kForward, rank_, inputs_, seen, narrow);
      builder.uses({part.down});
    }
    const BufferId of = sums.of[part.index], to = sums.to[part.index];
    if (!to.valid()) return;
    if (again && stays[part.index]) {
      up = saved->wide[part.index];
    } else {
      up = builder.activation("adapter_wide", wide);
      multiply(builder, "adapter_up", GemmRole::kForward, part.outputs, rank_, narrow, up);
      builder.uses({part.up});
    }
    // Scaled, then added.
    builder.add("adapter_add",
                AdapterAdd{false, shape.type,
                           adapter_steps(element).of(builder.size(wide, 0, 3 * element))},
                {up, of}, {to});
  });
  return out;
}

AdapterGradients Adapters::input_gradient(BlockBuilder& builder, BufferId y_gradient,
                                          BufferId x_gradient, const AdapterOutputs& saved) const {
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
    multiply(builder, "adapter_up_dgrad", GemmRole::kInputGradient, part.outputs, rank_, scaled,
             narrow);
    builder.uses({part.up});
    const BufferId of_input = builder.activation("adapter_input_gradient", tokens_ * inputs_);
    multiply(builder, "adapter_down_dgrad", GemmRole::kInputGradient, rank_, inputs_, narrow,
             of_input);
    builder.uses({part.down});
    if (saved.mask[part.index].valid()) {
      builder.add("adapter_dropout", dropout(builder, true), {of_input, saved.mask[part.index]},
                  {of_input});
    }
    builder.add("adapter_add",
                AdapterAdd{true, shape.type, builder.size(tokens_ * inputs_, 0, 3 * element)},
                {of_input, x_gradient}, {x_gradient});
  });
  return out;
}

void Adapters::weight_gradient(BlockBuilder& builder, BufferId x, const AdapterOutputs& saved,
                               const AdapterGradients& gradients) const {
  each([&](const Part& part) {
    const BufferId dropped = saved.dropped[part.index];
    weight_gradient(builder, "adapter_up_wgrad", part.up, part.outputs, rank_,
                    gradients.scaled[part.index], saved.narrow[part.index]);
    weight_gradient(builder, "adapter_down_wgrad", part.down, rank_, inputs_,
                    gradients.narrow[part.index], dropped.valid() ? dropped : x);
  });
}

}  // namespace stepcast
