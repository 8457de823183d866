// SPDX-License-Identifier: Apache-2.0
#include "program/block_builder.h"

#include <algorithm>
#include <cmath>

#include "layout/framework.h"
#include "layout/packed_documents.h"
#include "layout/scenario.h"
#include "operation/steps.h"
#include "program/flat_stretches.h"

namespace stepcast {
namespace {

// Unstated dropout is the framework's default, which is of models of the GPT form. BLOOM's script
// with ALiBi leaves it on too (bigscience-workshop/bigscience, tr11-176B-ml.slurm).
bool has_dropout(const Scenario& scenario) {
  const Model& model = scenario.model;
  if (model.dropout >= 0) return model.dropout > 0;
  const bool of_gpt = model.position == Position::kLearned || model.position == Position::kAlibi;
  return scenario.rules.drops_out_in_gpt && model.norm == Norm::kLayerNorm && of_gpt;
}

// Megatron's kernel reads fp16 and bf16, in fours of keys and of heads.
bool fuses_softmax(const FrameworkRules& rules, const Shape& shape) {
  if (rules.longest_fused_softmax == 0) return true;
  constexpr std::int64_t kFours = 4;
  constexpr std::int64_t kShortest = 16;  // rows are longer
  return shape.element == 2 && shape.sequence > kShortest &&
         shape.sequence <= rules.longest_fused_softmax && shape.sequence % kFours == 0 &&
         shape.batch * shape.heads % kFours == 0;
}

// A norm, and the sum of the residual stream beside it.
Steps joined_steps(Norm norm, bool backward, double element) {
  const Steps own = norm_steps(norm, backward, element), sum = residual_steps(false, element);
  return {own.bytes + sum.bytes, own.launches + sum.launches};
}

}  // namespace

Shape::Shape(const Scenario& scenario) {
  const Model& model = scenario.model;
  const Layout& layout = scenario.layout;
  batch = layout.micro_batch;
  cp = layout.cp;
  cp_method = layout.cp_method;
  ring_in_fp32 =
      traits_of(scenario.training.framework).ring_adds_in_fp32 && cp_method == ContextMethod::kRing;
  cp_exchange = layout.cp_exchange;
  sequence = scenario.training.sequence_length / cp;
  tp = layout.tp;
  tokens = batch * sequence;
  sequence_parallel = layout.sequence_parallel && tp > 1;
  rows = sequence_parallel ? tokens / tp : tokens;
  hidden = model.hidden;
  heads = model.heads / tp;
  kv_heads = std::max<std::int64_t>(1, model.kv_heads / tp);
  head_dim = model.head_dim;
  ffn = model.ffn / tp;
  vocab = scenario.padded_vocab() / tp;
  table_width = model.table_width();
  overlap_tp = layout.overlap.tp && tp > 1;
  dropout = has_dropout(scenario);
  type = scenario.training.wide();
  product = scenario.training.precision == DataType::kTf32 ? DataType::kTf32 : type;
  fp8 = fp8_of(scenario);
  attention_fp8 = attention_fp8_of(scenario);
  fp8_params = fp8 && scenario.training.fp8_params;
  fp8_attention = fp8 && scenario.training.fp8_attention;
  if (packs_documents(scenario)) {
    const auto span = std::max<std::int64_t>(1, std::llround(stepcast::document_span(scenario)));
    if (span < scenario.training.sequence_length) document_span = {span};
  }
  gradient = scenario.training.grad_precision;
  norm = model.norm;
  mode = scenario.training.mode;
  lora_rank = scenario.training.lora_rank;
  drops_adapter_inputs = scenario.training.lora_dropout > 0;
  element = size_of(type);
  softmax_in_steps = !fuses_softmax(scenario.rules, *this);
  in_steps = !scenario.training.compile;
}

GradientMode gradient_mode(const Scenario& scenario) {
  if (scenario.rules.gradients_by_unit || scenario.layout.zero == 3) {
    return GradientMode::kUnit;
  }
  return scenario.rules.fused_gradient_accumulation ? GradientMode::kFused
                                                    : GradientMode::kAccumulate;
}

BufferId BlockBuilder::buffer(const char* name, std::int64_t elements, DataType type,
                              MemoryCategory category) {
  block_.buffers.push_back({name, elements, type, category});
  return BufferId(block_.buffers.size() - 1);
}

ParameterId BlockBuilder::parameter(Parameter parameter) {
  const bool adapters_only = shape_.mode != TrainingMode::kPretrain;
  if (adapters_only && parameter.storage == WeightStorage::kTrained)
    parameter.storage = WeightStorage::kFrozen;
  return declare(parameter);
}

ParameterId BlockBuilder::adapter(const Parameter& parameter) { return declare(parameter); }

ParameterId BlockBuilder::declare(const Parameter& parameter) {
  block_.weights.push_back(parameter);
  const std::int64_t elements = parameter.borrowed ? 0 : parameter.elements();
  switch (parameter.storage) {
    case WeightStorage::kTrained:
      (parameter.cut == Cut::kNone && parameter.replicas == AxisGroup::kData
           ? block_.parameters.replicated
           : block_.parameters.sharded) += elements;
      count_in_group(block_, parameter.replicas, elements);
      if (parameter.in_fp8) block_.parameters.in_fp8 += elements;
      if (parameter.in_fp4) block_.parameters.in_fp4 += elements;
      break;
    case WeightStorage::kFp8:
      block_.frozen.in_fp8 += elements;
      break;
    case WeightStorage::kFrozen:
      block_.frozen.plain += elements;
      break;
    case WeightStorage::kFourBit:
      block_.frozen.four_bit += elements;
      break;
  }
  return ParameterId(block_.weights.size() - 1);
}

ParameterId BlockBuilder::vector(const char* name, std::int64_t elements, Cut cut,
                                 Initial initial) {
  return parameter({name, elements, 1, cut, initial});
}

std::vector<ParameterId> BlockBuilder::norm_parameters(const char* weight, const char* bias,
                                                       std::int64_t elements, Cut cut) {
  std::vector<ParameterId> out{vector(weight, elements, cut, Initial::kOnes)};
  if (bias != nullptr) out.push_back(vector(bias, elements, cut));
  return out;
}

void BlockBuilder::also_writes(Buffers buffers) {
  std::vector<BufferId>& writes = operations().back().writes;
  writes.insert(writes.end(), buffers.begin(), buffers.end());
}

void BlockBuilder::uses(std::initializer_list<ParameterId> parameters) {
  for (const ParameterId id : parameters) {
    if (id.valid()) operations().back().parameters.push_back(id);
  }
}

void BlockBuilder::uses(const std::vector<ParameterId>& parameters) {
  operations().back().parameters = parameters;
}

void BlockBuilder::into(Pass pass, Phase phase) {
  target_ = {pass, phase};
  const bool gradients = pass == Pass::kInputGradient || pass == Pass::kWeightGradient;
  if (!gradients || block_.form == BackwardForm::kSplit) return;
  target_.pass = Pass::kBackward;
  if (phase == Phase::kWeightGradient) target_.phase = Phase::kBackward;
}

void BlockBuilder::add(const char* name, Operation::Work work, Buffers reads, Buffers writes) {
  operations().push_back({name, target_.phase, std::move(work), reads, writes});
  std::erase_if(operations().back().reads, [](BufferId id) { return !id.valid(); });
  operations().back().graph_part = part_;
  operations().back().groups = groups_;
}

KernelSize BlockBuilder::size(std::int64_t elements, std::int64_t width, double bytes_per_element,
                              std::int64_t launches) const {
  return {elements, width, bytes_per_element * static_cast<double>(elements), launches};
}

AttentionSizes BlockBuilder::attention_sizes() const {
  return {shape_.batch, shape_.heads, shape_.kv_heads, shape_.sequence, shape_.head_dim};
}

void BlockBuilder::gemm(const char* name, GemmRole role, std::int64_t m, std::int64_t n,
                        std::int64_t k, Buffers reads, Buffers writes, bool bias, bool in_fp8) {
  const DataType input = multiplied(in_fp8);
  add(name, Gemm{role, 1, m, n, k, input, shape_.type, false, bias}, reads, writes);
}

void BlockBuilder::collective(const char* name, CollectiveKind kind, AxisGroup group,
                              std::int64_t elements, DataType type, Buffers reads, Buffers writes,
                              CollectivePurpose purpose, BlockStream stream) {
  // Beside a whole product nothing is cut into pieces.
  const bool overlapped = shape_.overlap_tp && group == AxisGroup::kTensor &&
                          purpose == CollectivePurpose::kActivations &&
                          stream == BlockStream::kCompute;
  add(name, Collective{kind, group, elements * size_of(type), type, overlapped, purpose}, reads,
      writes);
  operations().back().stream = stream;
}

void BlockBuilder::exchange(const char* name, AxisGroup group, std::int64_t elements, DataType type,
                            Buffers reads, Buffers writes, CollectivePurpose purpose,
                            std::int64_t copies, std::int64_t store_sms) {
  collective(name, CollectiveKind::kAllToAll, group, elements, type, reads, writes, purpose);
  auto& own = std::get<Collective>(operations().back().work);
  own.copies = {copies};
  own.store_sms = {store_sms};
}

void BlockBuilder::write_weight_gradient(const char* name, ParameterId weight,
                                         std::int64_t elements, Operation::Work product,
                                         BufferId fresh, Buffers reads) {
  among_weight_gradients([&] {
    if (fresh.valid()) {
      add(name, std::move(product), reads, {fresh});
    } else {
      add(name, std::move(product), reads, {});
    }
    uses({weight});
    if (mode_ == GradientMode::kAccumulate) accumulate(weight, elements, fresh);
  });
}

void BlockBuilder::weight_gradient(const char* name, ParameterId weight, std::int64_t n,
                                   std::int64_t k, Buffers reads, bool placeholder, bool in_fp8,
                                   std::int64_t tokens) {
  if (!trains(weight)) return;
  const std::int64_t elements = n * k;
  const DataType input = multiplied(in_fp8);
  Gemm gemm{GemmRole::kWeightGradient,           1,     n,           k,
            tokens > 0 ? tokens : shape_.tokens, input, shape_.type, false};
  BufferId fresh;
  if (mode_ == GradientMode::kFused) {
    gemm.output = shape_.gradient;
    gemm.accumulate = true;
    if (placeholder && rules_.placeholder_gradients)
      fresh = buffer(name, elements, shape_.type, MemoryCategory::kWorkspace);
  }
  if (mode_ == GradientMode::kAccumulate) {
    fresh = fresh_gradient(name, elements);
  }
  write_weight_gradient(name, weight, elements, gemm, fresh, reads);
}

void BlockBuilder::add_weight_gradient(const char* name, ParameterId weight, std::int64_t n,
                                       std::int64_t k, Buffers reads, bool in_fp8,
                                       std::int64_t tokens) {
  if (!trains(weight)) return;
  const bool fused = mode_ == GradientMode::kFused;
  const Gemm gemm{GemmRole::kWeightGradient,
                  1,
                  n,
                  k,
                  tokens,
                  multiplied(in_fp8),
                  fused ? shape_.gradient : shape_.type,
                  fused};
  const std::int64_t elements = n * k;
  const BufferId part = fused ? BufferId{} : buffer(name, elements, shape_.type);
  if (fused) {
    add(name, gemm, reads, {});
  } else {
    add(name, gemm, reads, {part});
  }
  uses({weight});
  if (fused) return;
  const auto bytes = static_cast<double>(shape_.element + 2 * size_of(gradient_type()));
  add("accumulate_gradient", Accumulate{shape_.type, gradient_type(), size(elements, 0, bytes)},
      {part}, {});
  uses({weight});
}

void BlockBuilder::weight_gradient(const char* name, ParameterId weight, GroupedGemm product,
                                   Buffers reads) {
  if (!trains(weight)) return;
  const std::int64_t elements = product.experts * product.outputs * product.inputs;
  BufferId fresh;
  if (mode_ == GradientMode::kFused) {
    product.output = shape_.gradient;
    product.accumulate = true;
  }
  if (mode_ == GradientMode::kAccumulate) {
    fresh = fresh_gradient(name, elements);
  }
  write_weight_gradient(name, weight, elements, product, fresh, reads);
}

// Gradients kept in 16 bits are among the states already, and take no memory of their own here.
BufferId BlockBuilder::fresh_gradient(const char* name, std::int64_t elements) {
  return buffer(name, rules_.keeps_half_gradients ? 0 : elements, shape_.type,
                MemoryCategory::kGradients);
}

void BlockBuilder::accumulate(ParameterId weight, std::int64_t elements, BufferId fresh) {
  const std::int64_t main = size_of(shape_.gradient);
  const auto bytes = static_cast<double>(shape_.element + 2 * main);
  if (rules_.keeps_half_gradients) {  // a cast, which is written and read again, then the sum
    const BufferId copy =
        buffer("gradient_copy", elements, shape_.gradient, MemoryCategory::kBuffers);
    const double more = static_cast<double>(2 * main);
    add("accumulate_gradient",
        Accumulate{shape_.type, shape_.gradient, size(elements, 0, bytes + more, 2)}, {fresh},
        {copy});
  } else {
    add("accumulate_gradient", Accumulate{shape_.type, shape_.gradient, size(elements, 0, bytes)},
        {fresh}, {});
  }
  uses({weight});
}

void BlockBuilder::bias_gradient(ParameterId bias, std::int64_t rows, std::int64_t width,
                                 Buffers reads) {
  if (!trains(bias)) return;
  const KernelSize own = size(rows * width, width, static_cast<double>(shape_.element), 2);
  among_weight_gradients([&] {
    add("bias_gradient", BiasGradient{shape_.type, gradient_type(), own}, reads, {});
    uses({bias});
  });
}

BufferId BlockBuilder::gather(const char* name, BufferId x, BlockStream stream,
                              std::int64_t width) {
  if (!shape_.sequence_parallel) return x;
  const std::int64_t elements = shape_.tokens * row(width);
  const BufferId gathered = activation(name, elements);
  collective(name, CollectiveKind::kAllGather, AxisGroup::kTensor, elements, shape_.type, {x},
             {gathered}, CollectivePurpose::kActivations, stream);
  return gathered;
}

BufferId BlockBuilder::reduce(const char* name, BufferId partial, BlockStream stream,
                              std::int64_t width) {
  if (shape_.tp == 1) return partial;
  const std::int64_t elements = shape_.tokens * row(width);
  constexpr auto kPurpose = CollectivePurpose::kActivations;
  if (!shape_.sequence_parallel) {
    collective(name, CollectiveKind::kAllReduce, AxisGroup::kTensor, elements, shape_.type,
               {partial}, {partial}, kPurpose, stream);
    return partial;
  }
  const BufferId reduced = activation(name, elements / shape_.tp);
  collective(name, CollectiveKind::kReduceScatter, AxisGroup::kTensor, elements, shape_.type,
             {partial}, {reduced}, kPurpose, stream);
  return reduced;
}

BufferId BlockBuilder::enter_region(const char* name, BufferId x, std::int64_t width) {
  return gather(name, x, BlockStream::kCompute, width);
}

BufferId BlockBuilder::leave_region(const char* name, BufferId partial) {
  return reduce(name, partial, BlockStream::kCompute);
}

BufferId BlockBuilder::enter_backward(const char* name, BufferId gradient, std::int64_t width) {
  const BufferId out = reduce(name, gradient, reduction_stream(), width);
  if (rules_.sums_input_gradients && shape_.tp > 1) {
    std::get<Collective>(operations().back().work).overlapped = false;
  }
  return out;
}

BufferId BlockBuilder::leave_backward(const char* name, BufferId gradient) {
  return gather(name, gradient, BlockStream::kCompute);
}

BufferId BlockBuilder::gather_again(const char* name, BufferId x, BufferId gathered,
                                    std::int64_t width) {
  return rules_.keeps_gathered_inputs ? gathered : gather(name, x, backward_stream(), width);
}

BufferId BlockBuilder::norm(const char* name, const Parameters& parameters, BufferId x,
                            std::int64_t rows, std::int64_t width) {
  const BufferId y = activation(name, rows * width);
  const double element = static_cast<double>(shape_.element);
  const KernelSize own =
      norm_steps(shape_.norm, false, element).of(size(rows * width, width, 2 * element));
  add(name,
      Normalization{shape_.norm, false, parameters.size() > 1, false, false, shape_.type,
                    gradient_type(), own},
      {x}, {y});
  if (shape_.in_steps && shape_.norm == Norm::kRmsNorm &&
      shape_.element < size_of(DataType::kFp32)) {
    const NormInSteps kept{x, buffer("norm_wide", rows * width, DataType::kFp32),
                           activation("norm_narrow", rows * width)};
    also_writes({kept.wide, kept.narrow});
    norms_in_steps_.push_back(kept);
  }
  uses(parameters);
  return y;
}

const BlockBuilder::NormInSteps* BlockBuilder::in_steps(BufferId x) const {
  const auto latest = std::find_if(norms_in_steps_.rbegin(), norms_in_steps_.rend(),
                                   [x](const NormInSteps& norm) { return norm.input == x; });
  return latest == norms_in_steps_.rend() ? nullptr : &*latest;
}

BlockBuilder::JoinedNorm BlockBuilder::add_norm(const char* name, const char* sum,
                                                const Parameters& parameters, BufferId branch,
                                                ParameterId branch_bias, BufferId residual,
                                                std::int64_t rows, std::int64_t width) {
  const JoinedNorm out{activation(sum, rows * width), activation(name, rows * width)};
  const double element = static_cast<double>(shape_.element);
  const KernelSize own =
      joined_steps(shape_.norm, false, element).of(size(rows * width, width, 4 * element));
  add(name,
      Normalization{shape_.norm, false, parameters.size() > 1, true, branch_bias.valid(),
                    shape_.type, gradient_type(), own},
      {branch, residual}, {out.sum, out.y});
  uses(parameters);
  if (branch_bias.valid()) operations().back().parameters.push_back(branch_bias);
  return out;
}

BufferId BlockBuilder::norm_backward(const char* name, const Parameters& parameters, BufferId x,
                                     BufferId gradient, BufferId residual, std::int64_t rows,
                                     std::int64_t width) {
  const std::int64_t elements = rows * width;
  const double element = static_cast<double>(shape_.element), bytes = 3 * element;
  const bool joined = residual.valid() && rules_.fuses_neighbours;
  const BufferId dx = activation(name, elements);
  // And the sum over rows for the weights.
  const KernelSize own =
      joined ? joined_steps(shape_.norm, true, element).of(size(elements, width, 4 * element))
             : norm_steps(shape_.norm, true, element).of(size(elements, width, bytes));
  const NormInSteps* steps = in_steps(x);
  add(name,
      Normalization{shape_.norm, true, parameters.size() > 1, joined, false, shape_.type,
                    gradient_type(), own},
      {steps != nullptr ? steps->wide : x, steps != nullptr ? steps->narrow : BufferId{}, gradient,
       joined ? residual : BufferId{}},
      {dx});
  uses(parameters);
  if (!residual.valid() || joined) return dx;
  const BufferId sum = activation("residual_gradient", elements);
  add("add_residual_gradient",
      ResidualAdd{true, false, false, shape_.type, size(elements, width, bytes)}, {dx, residual},
      {sum});
  return sum;
}

}  // namespace stepcast
