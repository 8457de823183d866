// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/assert.h"
#include "execute/operation_call.h"

namespace stepcast {
namespace {

constexpr double kLargestNorm = 1;  // to which gradients are clipped, as frameworks default to

cpu::NormKind norm_kind(const OperationCall& call) {
  return call.scenario.model.norm == Norm::kLayerNorm ? cpu::NormKind::kLayer : cpu::NormKind::kRms;
}

std::int64_t query_width(const Shape& shape) { return shape.heads * shape.head_dim; }
std::int64_t key_width(const Shape& shape) { return shape.kv_heads * shape.head_dim; }
std::int64_t packed_width(const Shape& shape) { return query_width(shape) + 2 * key_width(shape); }

// Queries and keys inside the packed projection: the same head of all tokens, or all heads of a
// token as one row.
void norm_queries_and_keys(const OperationCall& call, const Elementwise& kernel) {
  const Shape& shape = call.shape;
  const std::int64_t packed = packed_width(shape);
  const std::int64_t widths[] = {query_width(shape), key_width(shape)};
  std::int64_t begin = 0;
  for (std::size_t side = 0; side < 2; ++side) {
    const std::int64_t width = call.parameter(side).elements(), heads = widths[side] / width;
    const Array weight = call.weight(side);
    GradientPlace place{{}, false};
    if (kernel.backward) place = call.gradient(side);
    for (std::int64_t h = 0; h < heads; ++h) {
      const Array x = call.read(0).from(begin + h * width);
      if (!kernel.backward) {
        call.kernels().norm(cpu::NormKind::kRms, x, weight, {}, call.write(side).from(h * width),
                            shape.tokens, width, packed, widths[side]);
        continue;
      }
      const Array gradient = call.write(0).from(begin + h * width);
      call.kernels().norm_backward(cpu::NormKind::kRms, x, weight, gradient, gradient, place.data,
                                   {}, !place.fresh || h > 0, shape.tokens, width, packed, packed);
    }
    begin += widths[side];
  }
}

void run_norm(const OperationCall& call, const Elementwise& kernel) {
  if (std::string_view(call.operation.name) == "query_key_norm") {
    return norm_queries_and_keys(call, kernel);
  }
  const std::int64_t rows = kernel.elements / kernel.width, width = kernel.width;
  if (!kernel.backward) {
    call.kernels().norm(norm_kind(call), call.read(0), call.weight(0), call.weight(1),
                        call.write(0), rows, width, width, width);
    return;
  }
  const GradientPlace weight = call.gradient(0);
  const Array bias = call.has_parameter(1) ? call.gradient(1).data : Array{};
  call.kernels().norm_backward(norm_kind(call), call.read(0), call.weight(0), call.read(1),
                               call.write(0), weight.data, bias, !weight.fresh, rows, width, width,
                               width);
}

void run_activation(const OperationCall& call, const Elementwise& kernel) {
  const auto kind = call.scenario.model.mlp == Mlp::kSwiglu ? cpu::ActivationKind::kSwiglu
                                                            : cpu::ActivationKind::kGelu;
  const std::int64_t rows = kernel.elements / call.shape.ffn;
  if (kernel.backward) {
    call.kernels().activation_backward(kind, call.read(0), call.weight(0), call.read(1),
                                       call.write(0), rows, call.shape.ffn);
  } else {
    call.kernels().activation(kind, call.read(0), call.weight(0), call.write(0), rows,
                              call.shape.ffn);
  }
}

void run_rotary(const OperationCall& call, const Elementwise& kernel) {
  const Shape& shape = call.shape;
  const std::int64_t query = query_width(shape), key = key_width(shape),
                     packed = packed_width(shape);
  const auto turn = [&](std::int64_t heads, Array in, std::int64_t in_stride, Array out,
                        std::int64_t out_stride) {
    call.kernels().rotary(shape.batch, shape.sequence, heads, shape.head_dim, {in, in_stride},
                          {out, out_stride}, kernel.backward);
  };
  if (kernel.backward) {  // in place in the packed gradient
    turn(shape.heads, call.read(0), packed, call.write(0), packed);
    turn(shape.kv_heads, call.read(0).from(query), packed, call.write(0).from(query), packed);
    return;
  }
  const auto is_packed = [&](std::size_t i) {
    return call.buffer(call.operation.reads[i]).elements == shape.tokens * packed;
  };
  turn(shape.heads, call.read(0), is_packed(0) ? packed : query, call.write(0), query);
  turn(shape.kv_heads, call.read(1).from(is_packed(1) ? query : 0), is_packed(1) ? packed : key,
       call.write(1), key);
}

void run_accumulate(const OperationCall& call, const Elementwise& kernel) {
  const GradientPlace place = call.gradient(0);
  if (place.fresh) {
    call.kernels().copy(call.read(0), place.data, kernel.elements);
  } else {
    call.kernels().accumulate(call.read(0), place.data, kernel.elements);
  }
}

void run_fill(const OperationCall& call, const Elementwise& kernel) {
  if (call.operation.parameters.empty()) return call.state.zero_gradients();
  const Array table = call.operation.writes.empty() ? call.gradient(0).data : call.write(0);
  call.kernels().fill(table, 0, kernel.elements);
}

void run_cast(const OperationCall& call, const Elementwise& kernel) {
  const std::string_view name = call.operation.name;
  if (name == "embedding_output") {  // the same tensor under another name
    call.instance.buffers[call.operation.writes[0].index()] =
        call.instance.buffers[call.operation.reads[0].index()];
  } else if (name == "logits_cast") {
    call.kernels().copy(call.read(0), call.write(0), kernel.elements);
  } else if (name == "copy_parameters") {
    call.state.round_weights();
  } else if (name == "cast_gradients") {
    const ElementRange unit = call.wide->unit;
    call.wide->data =
        call.memory.make_uncounted(unit.size(), call.scenario.training.reduce_precision);
    call.kernels().copy(call.state.gradients(unit.begin), call.wide->data->array(), unit.size());
  } else {
    STEPCAST_ASSERT(false, "every cast is run");
  }
}

void run_reduction(const OperationCall& call, const Elementwise& kernel) {
  if (std::string_view(call.operation.name) == "bias_gradient") {
    const GradientPlace place = call.gradient(0);
    call.kernels().bias_gradient(call.read(0), place.data, kernel.elements / kernel.width,
                                 kernel.width, !place.fresh);
    return;
  }
  call.state.add_squares(call.counted_elsewhere, &call.totals->local_squared_norm);
}

void run_optimizer(const OperationCall& call) {
  if (std::string_view(call.operation.name) == "clip_gradients") {
    float squared = 0;  // chooses the factor on the host, as frameworks do
    call.memory.device.download(&squared, &call.totals->squared_norm, sizeof(squared));
    const double norm = std::sqrt(static_cast<double>(squared));
    call.state.scale_gradients(static_cast<float>(std::min(1.0, kLargestNorm / (norm + 1e-6))));
    return;
  }
  call.state.update(cpu::AdamW{}, call.step);
}

}  // namespace

void run_elementwise(const OperationCall& call, const Elementwise& kernel) {
  switch (kernel.kind) {
    case ElementwiseKind::kEmbedding:
      return run_embedding(call);
    case ElementwiseKind::kNorm:
      return run_norm(call, kernel);
    case ElementwiseKind::kActivation:
      return run_activation(call, kernel);
    case ElementwiseKind::kDropoutAdd:
      return call.kernels().add_residual(
          call.read(0), call.weight(0), call.read(1), call.write(0),
          call.has_parameter(0) ? call.shape.rows : 1,
          call.has_parameter(0) ? call.shape.hidden : kernel.elements);
    case ElementwiseKind::kSoftmax:
    case ElementwiseKind::kTranspose:
      return run_unfused_attention(call);
    case ElementwiseKind::kRotary:
      return run_rotary(call, kernel);
    case ElementwiseKind::kCrossEntropy:
      return run_loss(call, kernel);
    case ElementwiseKind::kReduction:
      return run_reduction(call, kernel);
    case ElementwiseKind::kCast:
      return run_cast(call, kernel);
    case ElementwiseKind::kAccumulate:
      return run_accumulate(call, kernel);
    case ElementwiseKind::kFill:
      return run_fill(call, kernel);
    case ElementwiseKind::kOptimizer:
      return run_optimizer(call);
  }
}

}  // namespace stepcast
