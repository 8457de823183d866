// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "core/assert.h"
#include "execute/operation_call.h"
#include "kernels/cpu/activation.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/rotary.h"

namespace stepcast {
namespace {

constexpr double kLargestNorm = 1;  // to which gradients are clipped, as frameworks default to

cpu::NormKind norm_kind(const OperationCall& call) {
  return call.scenario.model.norm == Norm::kLayerNorm ? cpu::NormKind::kLayer : cpu::NormKind::kRms;
}

std::int64_t query_width(const Shape& shape) { return shape.heads * shape.head_dim; }
std::int64_t key_width(const Shape& shape) { return shape.kv_heads * shape.head_dim; }
std::int64_t packed_width(const Shape& shape) { return query_width(shape) + 2 * key_width(shape); }

// Queries and keys inside the packed projection, head by head, or all heads of a token as one row.
void norm_queries_and_keys(const OperationCall& call, const Elementwise& kernel) {
  const Shape& shape = call.shape;
  const std::int64_t packed = packed_width(shape);
  const std::int64_t widths[] = {query_width(shape), key_width(shape)};
  std::int64_t begin = 0;
  for (std::size_t side = 0; side < 2; ++side) {
    const std::int64_t width = call.parameter(side).elements(), rows = widths[side] / width;
    const float* weight = call.weight(side);
    GradientPlace place{nullptr, false};
    if (kernel.backward) place = call.gradient(side);
    for (std::int64_t t = 0; t < shape.tokens; ++t) {
      const float* x = call.read(0) + t * packed + begin;
      if (!kernel.backward) {
        cpu::norm<float>(cpu::NormKind::kRms, x, weight, nullptr,
                         call.write(side) + t * widths[side], rows, width, width, width);
        continue;
      }
      float* gradient = call.write(0) + t * packed + begin;
      cpu::norm_backward<float>(cpu::NormKind::kRms, x, weight, gradient, gradient, place.data,
                                nullptr, !place.fresh || t > 0, rows, width, width, width);
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
    cpu::norm<float>(norm_kind(call), call.read(0), call.weight(0), call.weight(1), call.write(0),
                     rows, width, width, width);
    return;
  }
  const GradientPlace weight = call.gradient(0);
  float* bias = call.has_parameter(1) ? call.gradient(1).data : nullptr;
  cpu::norm_backward<float>(norm_kind(call), call.read(0), call.weight(0), call.read(1),
                            call.write(0), weight.data, bias, !weight.fresh, rows, width, width,
                            width);
}

void run_activation(const OperationCall& call, const Elementwise& kernel) {
  const auto kind = call.scenario.model.mlp == Mlp::kSwiglu ? cpu::ActivationKind::kSwiglu
                                                            : cpu::ActivationKind::kGelu;
  const std::int64_t rows = kernel.elements / call.shape.ffn;
  if (kernel.backward) {
    cpu::activation_backward<float>(kind, call.read(0), call.weight(0), call.read(1), call.write(0),
                                    rows, call.shape.ffn);
  } else {
    cpu::activation<float>(kind, call.read(0), call.weight(0), call.write(0), rows, call.shape.ffn);
  }
}

void run_rotary(const OperationCall& call, const Elementwise& kernel) {
  const Shape& shape = call.shape;
  const std::int64_t query = query_width(shape), key = key_width(shape),
                     packed = packed_width(shape);
  const auto turn = [&](std::int64_t heads, const float* in, std::int64_t in_stride, float* out,
                        std::int64_t out_stride) {
    cpu::rotary<float>(shape.batch, shape.sequence, heads, shape.head_dim, {in, in_stride},
                       {out, out_stride}, kernel.backward);
  };
  if (kernel.backward) {  // in place in the packed gradient
    turn(shape.heads, call.read(0), packed, call.write(0), packed);
    turn(shape.kv_heads, call.read(0) + query, packed, call.write(0) + query, packed);
    return;
  }
  const auto is_packed = [&](std::size_t i) {
    return call.buffer(call.operation.reads[i]).elements == shape.tokens * packed;
  };
  turn(shape.heads, call.read(0), is_packed(0) ? packed : query, call.write(0), query);
  turn(shape.kv_heads, call.read(1) + (is_packed(1) ? query : 0), is_packed(1) ? packed : key,
       call.write(1), key);
}

void run_accumulate(const OperationCall& call, const Elementwise& kernel) {
  const GradientPlace place = call.gradient(0);
  if (place.fresh) {
    std::copy_n(call.read(0), kernel.elements, place.data);
  } else {
    cpu::accumulate<float>(call.read(0), place.data, kernel.elements);
  }
}

void run_fill(const OperationCall& call, const Elementwise& kernel) {
  if (call.operation.parameters.empty()) return call.state.zero_gradients();
  float* table = call.operation.writes.empty() ? call.gradient(0).data : call.write(0);
  std::memset(table, 0, sizeof(float) * static_cast<std::size_t>(kernel.elements));
}

void run_cast(const OperationCall& call, const Elementwise& kernel) {
  const std::string_view name = call.operation.name;
  if (name == "embedding_output") {  // the same tensor under another name
    call.instance.buffers[call.operation.writes[0].index()] =
        call.instance.buffers[call.operation.reads[0].index()];
  } else if (name == "logits_cast") {
    std::copy_n(call.read(0), kernel.elements, call.write(0));
  } else {
    STEPCAST_ASSERT(false, "fp32 needs no other casts");
  }
}

void run_reduction(const OperationCall& call, const Elementwise& kernel) {
  if (std::string_view(call.operation.name) == "bias_gradient") {
    const GradientPlace place = call.gradient(0);
    cpu::bias_gradient<float>(call.read(0), place.data, kernel.elements / kernel.width,
                              kernel.width, !place.fresh);
    return;
  }
  call.totals.local_squared_norm = call.state.sum_of_squares(call.counted_elsewhere);
}

void run_optimizer(const OperationCall& call) {
  if (std::string_view(call.operation.name) == "clip_gradients") {
    const double norm = std::sqrt(call.totals.squared_norm);
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
      return cpu::add_residual<float>(call.read(0), call.weight(0), call.read(1), call.write(0),
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
