// SPDX-License-Identifier: Apache-2.0
#include "program/linear.h"

#include "operation/steps.h"

namespace stepcast {
namespace {

// torchao's products keep their inputs in 16 bits and cast them again backward
// (torchao/float8/float8_linear.py: matmul_with_hp_or_float8_args saves input_hp). Transformer
// Engine's modules keep what they have cast. Under sequence parallelism shares are kept as they are
// gathered.
bool casts_again(const BlockBuilder& builder) {
  const FrameworkRules& rules = builder.rules();
  return builder.shape().fp8 && rules.gradients_by_unit && !rules.norms_into_products &&
         !builder.shape().sequence_parallel;
}

}  // namespace

Linear::Linear(BlockBuilder& builder, const LinearNames& names, Parameter weight, bool has_adapters,
               std::int64_t tokens)
    : names_(names),
      outputs_(weight.rows),
      inputs_(weight.columns),
      tokens_(tokens > 0 ? tokens : builder.shape().tokens),
      four_bit_(builder.shape().mode == TrainingMode::kQlora),
      in_fp8_(builder.shape().fp8 && !four_bit_) {
  if (four_bit_) weight.storage = WeightStorage::kFourBit;
  if (in_fp8_ && builder.shape().mode == TrainingMode::kLora) weight.storage = WeightStorage::kFp8;
  weight.in_fp8 = in_fp8_;
  weight_ = builder.parameter(weight);
  trained_ = builder.trains(weight_);
  const std::int64_t rank = builder.shape().lora_rank;
  if (rank == 0 || !has_adapters) return;
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

bool Linear::has_adapters() const { return adapters_.front().down.valid(); }

// Where a unit's parameters are gathered for each pass, its matrices are cast for each product: in
// 16 bits by both copies, in fp8 (gathered so) by the one by columns alone. Elsewhere copies are
// kept, and made once a step.
BufferId Linear::cast_weight(BlockBuilder& builder, bool backward) const {
  const Shape& shape = builder.shape();
  if (!in_fp8_ || !trained_ || builder.mode() != GradientMode::kUnit) return {};
  const bool gathered_so = shape.fp8_params && !shape.fp8.recipe->gathers_wide;
  if (gathered_so && !(backward && shape.fp8.has_two_copies())) return {};
  const std::int64_t elements = outputs_ * inputs_;
  const BufferId copy = builder.buffer("weight_fp8", shape.fp8.copy_bytes(elements), DataType::kFp8,
                                       MemoryCategory::kWorkspace);
  const DataType from = gathered_so ? DataType::kFp8 : shape.type;
  const double read = static_cast<double>(size_of(from));
  if (shape.fp8.recipe->finds_scale && !gathered_so) {
    builder.add("find_scale",
                Cast{CastSubject::kScale, backward, from, DataType::kFp32,
                     builder.size(elements, 0, read, 2)},
                {}, {});
    builder.uses({weight_});
  }
  builder.add("cast_weight",
              Cast{CastSubject::kWeight, backward, from, DataType::kFp8,
                   builder.size(elements, 0, read + 1 + shape.fp8.recipe->weight_scale_bytes)},
              {}, {copy});
  builder.uses({weight_});
  return copy;
}

BufferId Linear::dense_weight(BlockBuilder& builder, bool backward) const {
  return four_bit_ ? expand(builder) : cast_weight(builder, backward);
}

Operand Linear::cast(BlockBuilder& builder, BufferId x, std::int64_t width, bool backward,
                     bool by_columns) const {
  return cast_operand(builder, x, tokens_ * width, backward, by_columns, false);
}

LinearInput Linear::enter(BlockBuilder& builder, const char* name, BufferId x, bool keeps) const {
  const Shape& shape = builder.shape();
  const bool by_columns = keeps && trained_;
  if (!in_fp8_) {
    const BufferId whole = builder.enter_region(name, x, inputs_);
    return {whole, {whole, whole}, x};
  }
  if (!shape.sequence_parallel) {
    const bool again = casts_again(builder);
    const Operand operand = cast(builder, x, inputs_, false, by_columns && !again);
    return {has_adapters() || again ? x : BufferId{}, operand, {}};
  }
  if (has_adapters()) {
    const BufferId whole = builder.enter_region(name, x, inputs_);
    return {whole, cast(builder, whole, inputs_, false, by_columns), x};
  }
  const bool both = by_columns && shape.fp8.recipe->scales_by_direction;
  const Operand share = cast_operand(builder, x, shape.rows * inputs_, false, both, true);
  LinearInput out;
  out.operand.rows =
      gather_copy(builder, name, share.rows, shape.tokens * inputs_, BlockStream::kCompute);
  out.share = both ? share.columns : share.rows;
  return out;
}

LinearInput Linear::take(BlockBuilder& builder, BufferId x, bool keeps) const {
  if (!in_fp8_) return {x, {x, x}, {}};
  const bool again = casts_again(builder);
  const Operand operand = cast(builder, x, inputs_, false, keeps && trained_ && !again);
  return {has_adapters() || again ? x : BufferId{}, operand, {}};
}

LinearInput Linear::leave_backward(BlockBuilder& builder, const char* name,
                                   BufferId gradient) const {
  const Shape& shape = builder.shape();
  if (!in_fp8_ || !shape.sequence_parallel || has_adapters()) {
    const BufferId whole = builder.leave_backward(name, gradient);
    return take_gradient(builder, whole);
  }
  const std::int64_t elements = shape.tokens * outputs_;
  const bool both = trained_ && shape.fp8.recipe->scales_by_direction;
  const Operand share = cast_operand(builder, gradient, shape.rows * outputs_, true, both, true);
  LinearInput out;
  if (both) {
    out.operand.columns =
        gather_copy(builder, name, share.columns, elements, builder.backward_stream());
  }
  out.operand.rows = gather_copy(builder, name, share.rows, elements, BlockStream::kCompute);
  return out;
}

LinearInput Linear::take_gradient(BlockBuilder& builder, BufferId gradient) const {
  if (!in_fp8_) return {gradient, {gradient, gradient}, {}};
  return {gradient, cast(builder, gradient, outputs_, true, trained_), {}};
}

LinearInput Linear::gather_again(BlockBuilder& builder, const char* name,
                                 const LinearInput& saved) const {
  const Shape& shape = builder.shape();
  LinearInput out = saved;
  if (!trained_ && !has_adapters()) return out;  // no weight gradient
  if (!in_fp8_ || has_adapters()) {
    out.x =
        builder.gather_again(name, saved.share.valid() ? saved.share : saved.x, saved.x, inputs_);
    if (!in_fp8_) out.operand.columns = out.x;
    return out;
  }
  // It was whole from the beginning, or is kept as it was gathered.
  const bool kept = builder.rules().keeps_gathered_inputs && !shape.fp8.recipe->scales_by_direction;
  if (!saved.share.valid() || kept) return out;
  const BufferId copy =
      gather_copy(builder, name, saved.share, shape.tokens * inputs_, builder.backward_stream());
  out.operand = shape.fp8.recipe->scales_by_direction ? Operand{{}, copy} : Operand{copy, {}};
  return out;
}

LinearInput Linear::renewed(const LinearInput& saved, BufferId x) const {
  if (in_fp8_ && (has_adapters() || !saved.x.valid())) return saved;
  if (in_fp8_) return {x, saved.operand, saved.share};
  if (!saved.share.valid()) return {x, {x, x}, {}};
  const bool is_whole = saved.x == saved.share;
  return is_whole ? LinearInput{x, {x, x}, x} : LinearInput{saved.x, saved.operand, x};
}

BufferId Linear::make_apart(BlockBuilder& builder, const LinearInput& input, ParameterId bias,
                            std::int64_t apart) const {
  const BufferId y = builder.activation(names_.output, tokens_ * apart);
  builder.gemm(names_.layer, GemmRole::kForward, tokens_, apart, inputs_, {input.operand.rows}, {y},
               bias.valid(), in_fp8_);
  builder.uses({weight_, bias});
  return y;
}

LinearOutput Linear::forward(BlockBuilder& builder, const LinearInput& input, ParameterId bias,
                             std::int64_t apart) const {
  const Shape& shape = builder.shape();
  const double element = static_cast<double>(shape.element);
  LinearOutput out;
  out.y = builder.activation(names_.output, tokens_ * (outputs_ - apart));
  if (apart > 0) out.apart = builder.activation(names_.output, tokens_ * apart);
  const BufferId dense = dense_weight(builder, false);
  builder.gemm(names_.layer, GemmRole::kForward, tokens_, outputs_, inputs_,
               {input.operand.rows, dense}, {out.y}, bias.valid(), in_fp8_);
  if (apart > 0) builder.also_writes({out.apart});
  builder.uses({weight_, bias});
  for (std::size_t i = 0; i < adapters_.size(); ++i) {
    const Adapter& adapter = adapters_[i];
    if (!adapter.down.valid()) continue;
    const std::int64_t wide = tokens_ * adapter.outputs;
    out.narrow[i] = builder.activation("adapter_narrow", tokens_ * shape.lora_rank);
    builder.gemm("adapter_down", GemmRole::kForward, tokens_, shape.lora_rank, inputs_, {input.x},
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

LinearGradient Linear::input_gradient(BlockBuilder& builder, const LinearInput& gradient) const {
  const Shape& shape = builder.shape();
  const double element = static_cast<double>(shape.element);
  LinearGradient out;
  out.x = builder.activation(names_.output_gradient, tokens_ * inputs_);
  const BufferId dense = dense_weight(builder, true);
  builder.gemm(names_.input_gradient, GemmRole::kInputGradient, tokens_, inputs_, outputs_,
               {gradient.operand.rows, dense}, {out.x}, false, in_fp8_);
  builder.uses({weight_});
  for (std::size_t i = 0; i < adapters_.size(); ++i) {
    const Adapter& adapter = adapters_[i];
    if (!adapter.down.valid()) continue;
    const std::int64_t wide = tokens_ * adapter.outputs;
    out.scaled[i] = builder.activation("adapter_wide_gradient", wide);
    builder.add("adapter_scale", AdapterScale{shape.type, builder.size(wide, 0, 2 * element)},
                {gradient.x}, {out.scaled[i]});
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

void Linear::weight_gradient(BlockBuilder& builder, const LinearInput& gradient,
                             const LinearInput& input, const LinearOutput& saved,
                             const LinearGradient& flowing) const {
  const auto by_columns = [&](const Operand& operand, std::int64_t width) {
    if (operand.columns.valid() || !trained_) return operand.columns;
    BufferId out;
    builder.among_weight_gradients(
        [&] { out = transposed(builder, operand.rows, tokens_ * width, true); });
    return out;
  };
  const BufferId of_output = by_columns(gradient.operand, outputs_);
  BufferId of_input = input.operand.columns;
  if (casts_again(builder) && trained_) {
    builder.among_weight_gradients([&] {
      const Operand operand = cast(builder, input.x, inputs_, false, true);
      of_input = operand.columns;
    });
  } else {
    of_input = by_columns(input.operand, inputs_);
  }
  builder.weight_gradient(names_.weight_gradient, weight_, outputs_, inputs_, {of_output, of_input},
                          false, in_fp8_, tokens_);
  for (std::size_t i = 0; i < adapters_.size(); ++i) {
    const Adapter& adapter = adapters_[i];
    if (!adapter.down.valid()) continue;
    builder.weight_gradient("adapter_up_wgrad", adapter.up, adapter.outputs,
                            builder.shape().lora_rank, {flowing.scaled[i], saved.narrow[i]});
    builder.weight_gradient("adapter_down_wgrad", adapter.down, builder.shape().lora_rank, inputs_,
                            {flowing.narrow[i], input.x});
  }
}

}  // namespace stepcast
