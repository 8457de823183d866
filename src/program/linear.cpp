// SPDX-License-Identifier: Apache-2.0
#include "program/linear.h"

#include "program/product_weight.h"

namespace stepcast {

std::optional<Linear> table_projection(BlockBuilder& builder, const LinearNames& names,
                                       std::int64_t outputs, std::int64_t inputs) {
  if (outputs == inputs) return std::nullopt;
  return Linear(builder, names, {names.layer, outputs, inputs}, false, builder.shape().rows);
}

Linear::Linear(BlockBuilder& builder, const LinearNames& names, Parameter weight, bool has_adapters,
               std::int64_t tokens)
    : names_(names),
      outputs_(weight.rows),
      inputs_(weight.columns),
      tokens_(tokens > 0 ? tokens : builder.shape().tokens),
      form_(&operand_form(builder)) {
  store_matrix(builder, weight);
  weight_ = builder.parameter(weight);
  trained_ = builder.trains(weight_);
  if (has_adapters) adapters_ = Adapters(builder, weight, tokens_);
}

OperandRequest Linear::of_input(BufferId x, bool keeps) const {
  return {x, tokens_, inputs_, keeps && trained_, adapters_.any(), casts_again_};
}

OperandRequest Linear::of_gradient(BufferId gradient) const {
  return {gradient, tokens_, outputs_, trained_, adapters_.any()};
}

LinearInput Linear::enter(BlockBuilder& builder, const char* name, BufferId x, bool keeps) const {
  return form_->enter(builder, name, of_input(x, keeps));
}

LinearInput Linear::take(BlockBuilder& builder, BufferId x, bool keeps) const {
  return form_->take(builder, of_input(x, keeps));
}

LinearInput Linear::leave_backward(BlockBuilder& builder, const char* name,
                                   BufferId gradient) const {
  return form_->leave_backward(builder, name, of_gradient(gradient));
}

LinearInput Linear::take_gradient(BlockBuilder& builder, BufferId gradient) const {
  return form_->take_gradient(builder, of_gradient(gradient));
}

LinearInput Linear::gather_again(BlockBuilder& builder, const char* name,
                                 const LinearInput& saved) const {
  const bool has_weight_gradient = trained_ || adapters_.any();
  return has_weight_gradient ? form_->gather_again(builder, name, of_input(saved.x), saved) : saved;
}

LinearInput Linear::renewed(const LinearInput& saved, BufferId x) const {
  return form_->renewed(saved, of_input(x));
}

void Linear::multiply(BlockBuilder& builder, const LinearInput& input, ParameterId bias,
                      const OutputSplit& split, LinearOutput& out) const {
  const std::int64_t apart = split.apart, last = split.last;
  out.y = builder.activation(names_.output, tokens_ * (outputs_ - apart - last));
  if (last > 0) out.last = builder.activation(names_.output, tokens_ * last);
  if (apart > 0) out.apart = builder.activation(names_.output, tokens_ * apart);
  const BufferId matrix = matrix_for_product(builder, weight_, outputs_ * inputs_, false);
  builder.gemm(names_.layer, GemmRole::kForward, tokens_, outputs_, inputs_,
               {input.operand.rows, matrix}, {out.y}, bias.valid(), form_->is_fp8());
  if (apart > 0) builder.also_writes({out.apart});
  if (last > 0) builder.also_writes({out.last});
  builder.uses({weight_, bias});
}

LinearOutput Linear::forward(BlockBuilder& builder, const LinearInput& input, ParameterId bias,
                             const OutputSplit& split) const {
  LinearOutput out;
  multiply(builder, input, bias, split, out);
  if (!adapters_.any()) return out;
  if (!split.stay) {
    out.adapters = adapters_.forward(builder, input.x, out.y);
    return out;
  }
  stand_apart(builder, out);
  out.adapters = adapters_.forward(builder, input.x, sums_of(out));
  return out;
}

// The product's own results stay as they are: sums get other buffers.
void Linear::stand_apart(BlockBuilder& builder, LinearOutput& out) const {
  const auto sum_of = [&](BufferId of) {
    return builder.buffer(names_.output, builder.block().buffers[of.index()].elements,
                          builder.shape().type);
  };
  if (!out.bare.valid()) {
    out.bare = out.y;
    out.bare_last = out.last;
  }
  out.y = sum_of(out.bare);
  if (out.bare_last.valid()) out.last = sum_of(out.bare_last);
}

Adapters::Sums Linear::sums_of(const LinearOutput& out) {
  return {{out.bare, out.apart, out.bare_last}, {out.y, out.apart, out.last}};
}

LinearOutput Linear::make_again(BlockBuilder& builder, const LinearInput& input,
                                const LinearOutput& saved, ParameterId bias, std::int64_t dropped,
                                bool read) const {
  const bool all = dropped == outputs_;
  LinearOutput out = saved;
  if (read && all) {
    out = {};
    multiply(builder, input, bias, {}, out);
  } else if (read && dropped > 0) {
    out.apart = builder.activation(names_.output, tokens_ * dropped);
    const BufferId matrix = matrix_for_product(builder, weight_, dropped * inputs_, false);
    builder.gemm(names_.layer, GemmRole::kForward, tokens_, dropped, inputs_,
                 {input.operand.rows, matrix}, {out.apart}, bias.valid(), form_->is_fp8());
    builder.uses({weight_, bias});
  }
  if (!adapters_.any()) return out;
  Adapters::Sums sums;
  if (read && all) {
    sums = {{out.y, out.y, out.y}, {out.y, out.y, out.y}};
  } else if (read) {
    stand_apart(builder, out);
    sums = sums_of(out);
  }
  out.adapters =
      adapters_.make_again(builder, input.x, sums, saved.adapters, {!all, dropped == 0, !all});
  return out;
}

LinearGradient Linear::input_gradient(BlockBuilder& builder, const LinearInput& gradient,
                                      const LinearOutput& saved) const {
  LinearGradient out;
  out.x = builder.activation(names_.output_gradient, tokens_ * inputs_);
  const BufferId matrix = matrix_for_product(builder, weight_, outputs_ * inputs_, true);
  builder.gemm(names_.input_gradient, GemmRole::kInputGradient, tokens_, inputs_, outputs_,
               {gradient.operand.rows, matrix}, {out.x}, false, form_->is_fp8());
  builder.uses({weight_});
  out.adapters = adapters_.input_gradient(builder, gradient.x, out.x, saved.adapters);
  return out;
}

void Linear::weight_gradient(BlockBuilder& builder, const LinearInput& gradient,
                             const LinearInput& input, const LinearOutput& saved,
                             const LinearGradient& flowing) const {
  const BufferId of_output = form_->by_columns(builder, of_gradient(gradient.x), gradient.operand);
  const BufferId of_x = form_->input_by_columns(builder, of_input(input.x), input);
  builder.weight_gradient(names_.weight_gradient, weight_, outputs_, inputs_, {of_output, of_x},
                          false, form_->is_fp8(), tokens_);
  adapters_.weight_gradient(builder, input.x, saved.adapters, flowing.adapters);
}

}  // namespace stepcast
