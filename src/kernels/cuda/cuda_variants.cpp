// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda_variants.h"

#include "kernels/cuda/array_types.h"
#include "kernels/cuda/attention_sinks.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/dropout.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/expert_activation.h"
#include "kernels/cuda/expert_bias.h"
#include "kernels/cuda/latent_rotary.h"
#include "kernels/cuda/router.h"
#include "kernels/cuda/token_rows.h"

namespace stepcast::cuda {
namespace {

float* floats(Array array) {
  STEPCAST_ASSERT(array.type == DataType::kFp32, "scores and weights of rows are fp32");
  return array.as<float>();
}

}  // namespace

std::int32_t* CudaVariants::integer_workspace(std::int64_t count) {
  static_assert(sizeof(std::int32_t) == sizeof(float));
  return reinterpret_cast<std::int32_t*>(kernels_.workspace(count));
}

void CudaVariants::latent_rotary(const LatentRotaryArguments& call) {
  const float* table =
      kernels_.rotary_table(call.shape.sequence, call.shape.rotary, call.shape.places);
  with_type(call.query, [&](auto x) {
    using T = decltype(x);
    cuda::latent_rotary<T>(call.shape, call.query.as<T>(), call.up.as<const T>(),
                           {call.rotary_key.array.as<const T>(), call.rotary_key.stride},
                           call.key.as<T>(), call.value.as<T>(), table, kernels_.stream_);
  });
}

void CudaVariants::latent_rotary_backward(const LatentRotaryGradientArguments& call) {
  const float* table =
      kernels_.rotary_table(call.shape.sequence, call.shape.rotary, call.shape.places);
  with_type(call.query_gradient, [&](auto x) {
    using T = decltype(x);
    cuda::latent_rotary_backward<T>(call.shape, call.query_gradient.as<T>(),
                                    call.key_gradient.as<const T>(),
                                    call.value_gradient.as<const T>(), call.up_gradient.as<T>(),
                                    call.rotary_gradient.as<T>(), table, kernels_.stream_);
  });
}

void CudaVariants::copy_columns(const CopyColumnsArguments& call) {
  with_type(call.from.array, [&](auto x) {
    using T = decltype(x);
    cuda::copy_columns(call.from.array.as<const T>(), call.from.stride, call.to.array.as<T>(),
                       call.to.stride, call.rows, call.columns, kernels_.stream_);
  });
}

void CudaVariants::spread_rows(const SpreadRowsArguments& call) {
  with_type(call.to.array, [&](auto y) {
    using To = decltype(y);
    if (!call.from.array) return cuda::move_spread_rows<To, To>(call, kernels_.stream_);
    with_type(call.from.array,
              [&](auto x) { cuda::move_spread_rows<decltype(x), To>(call, kernels_.stream_); });
  });
}

void CudaVariants::add_sinks(const AttentionSinkArguments& call) {
  with_type(call.context.array,
            [&](auto x) { cuda::add_sinks<decltype(x)>(call, kernels_.stream_); });
}

void CudaVariants::sink_gradient(const SinkGradientArguments& call) {
  with_types(call.context.array, call.gradient, [&](auto x, auto y) {
    cuda::sink_gradient<decltype(x), decltype(y)>(call, kernels_.stream_);
  });
}

void CudaVariants::merge_part(const MergedPartArguments& call) {
  with_types(call.part.array, call.context.array, [&](auto x, auto y) {
    cuda::merge_part<decltype(x), decltype(y)>(call, kernels_.stream_);
  });
}

void CudaVariants::dropout(const DropoutArguments& call) {
  with_type(call.x, [&](auto x) {
    using T = decltype(x);
    cuda::dropout(call.shape, call.x.as<const T>(), call.bias.as<const T>(),
                  call.residual.as<const T>(), call.out.as<T>(), call.mask.as<std::int8_t>(),
                  kernels_.stream_);
  });
}

void CudaVariants::dropout_backward(const DropoutGradientArguments& call) {
  with_type(call.gradient, [&](auto x) {
    using T = decltype(x);
    cuda::dropout_backward(call.shape, call.gradient.as<const T>(),
                           call.mask.as<const std::int8_t>(), call.out.as<T>(), kernels_.stream_);
  });
}

void CudaVariants::route(const RouteArguments& call) {
  cuda::route(call.shape, floats(call.logits), integers(call.choice), floats(call.probabilities),
              call.chosen.as<std::int8_t>(), kernels_.stream_, call.bias.as<const float>());
}

void CudaVariants::route_backward(const RouteGradientArguments& call) {
  cuda::route_backward(call.shape, floats(call.probabilities), call.chosen.as<const std::int8_t>(),
                       floats(call.weight_gradient), floats(call.logits_gradient),
                       integer_workspace(router_workspace(call.shape)), kernels_.stream_);
}

void CudaVariants::choose_rows(const ChosenRowsArguments& call) {
  cuda::choose_rows(call.shape, floats(call.probabilities), call.chosen.as<const std::int8_t>(),
                    call.token_of_row.as<std::int64_t>(), floats(call.weights),
                    integer_workspace(router_workspace(call.shape)), kernels_.stream_);
}

void CudaVariants::take_rows(const MovedRowsArguments& call) {
  if (call.sources > 0 && call.rows > call.sources) return take_rows_again(call);
  with_type(call.from, [&](auto x) {
    using T = decltype(x);
    cuda::take_rows(call.from.as<const T>(), integers(call.index), call.to.as<T>(), call.rows,
                    call.width, kernels_.stream_);
  });
}

void CudaVariants::take_rows_again(const MovedRowsArguments& call) {
  std::int32_t* lists = integer_workspace(call.sources + call.rows);
  with_type(call.from, [&](auto x) {
    using T = decltype(x);
    cuda::spread_rows(call.from.as<const T>(), integers(call.index), call.to.as<T>(), call.rows,
                      call.sources, call.width, lists, kernels_.stream_);
  });
}

void CudaVariants::put_rows(const MovedRowsArguments& call) {
  with_type(call.from, [&](auto x) {
    using T = decltype(x);
    cuda::put_rows(call.from.as<const T>(), integers(call.index), call.to.as<T>(), call.rows,
                   call.width, kernels_.stream_);
  });
}

void CudaVariants::add_rows(const AddedRowsArguments& call) {
  std::int32_t* lists = integer_workspace(call.targets + call.rows);
  with_type(call.from, [&](auto x) {
    using T = decltype(x);
    cuda::add_rows(call.from.as<const T>(), integers(call.index), call.to.as<T>(), call.rows,
                   call.targets, call.width, lists, kernels_.stream_);
  });
}

void CudaVariants::expert_activation(const ExpertActivationArguments& call) {
  with_type(call.up, [&](auto x) {
    using T = decltype(x);
    cuda::expert_activation(call.kind, call.up.as<const T>(), floats(call.weights),
                            call.out.as<T>(), call.rows, call.width, kernels_.stream_);
  });
}

void CudaVariants::expert_activation_backward(const ExpertActivationGradientArguments& call) {
  with_type(call.up, [&](auto x) {
    using T = decltype(x);
    cuda::expert_activation_backward(call.kind, call.up.as<const T>(), floats(call.weights),
                                     call.gradient.as<const T>(), call.up_gradient.as<T>(),
                                     floats(call.weight_gradient), call.rows, call.width,
                                     kernels_.stream_);
  });
}

void CudaVariants::add_weighed_bias(const WeighedBiasArguments& call) {
  with_type(call.data, [&](auto x) {
    using T = decltype(x);
    cuda::add_weighed_bias(call.data.as<T>(), call.bias.as<const T>(),
                           call.weights.as<const float>(), call.rows, call.width, kernels_.stream_);
  });
}

void CudaVariants::weigh_rows(const WeighedRowsArguments& call) {
  with_type(call.data, [&](auto x) {
    using T = decltype(x);
    cuda::weigh_rows(call.data.as<const T>(), floats(call.weights), call.out.as<T>(), call.rows,
                     call.width, kernels_.stream_);
  });
}

void CudaVariants::bias_products(const BiasProductArguments& call) {
  with_type(call.data, [&](auto x) {
    using T = decltype(x);
    cuda::bias_products(call.data.as<const T>(), call.bias.as<const T>(), floats(call.out),
                        call.rows, call.width, kernels_.stream_);
  });
}

void CudaVariants::step_by_sign(const SignStepArguments& call) {
  with_types(call.rounded ? call.rounded : call.gradient, call.gradient, [&](auto x, auto y) {
    using R = decltype(x);
    using G = decltype(y);
    cuda::step_by_sign(call.gradient.as<const G>(), call.weight.as<float>(), call.rounded.as<R>(),
                       call.rate, call.count, kernels_.stream_);
  });
}

}  // namespace stepcast::cuda
