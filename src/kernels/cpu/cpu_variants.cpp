// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cpu_variants.h"

#include <algorithm>

#include "kernels/cpu/attention_sinks.h"
#include "kernels/cpu/context.h"
#include "kernels/cpu/dropout.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/expert_bias.h"
#include "kernels/cpu/experts.h"
#include "kernels/cpu/floats.h"
#include "kernels/cpu/latent_rotary.h"

namespace stepcast {

using cpu::floats;
using cpu::integers;

void CpuVariants::latent_rotary(const LatentRotaryArguments& call) {
  cpu::latent_rotary<float>(call.shape, floats(call.query), floats(call.up),
                            {floats(call.rotary_key.array), call.rotary_key.stride},
                            floats(call.key), floats(call.value));
}

void CpuVariants::latent_rotary_backward(const LatentRotaryGradientArguments& call) {
  cpu::latent_rotary_backward<float>(call.shape, floats(call.query_gradient),
                                     floats(call.key_gradient), floats(call.value_gradient),
                                     floats(call.up_gradient), floats(call.rotary_gradient));
}

void CpuVariants::copy_columns(const CopyColumnsArguments& call) {
  const float* in = floats(call.from.array);
  float* out = floats(call.to.array);
  for (std::int64_t row = 0; row < call.rows; ++row) {
    std::copy_n(in + row * call.from.stride, call.columns, out + row * call.to.stride);
  }
}

void CpuVariants::spread_rows(const SpreadRowsArguments& call) { cpu::spread_rows(call); }
void CpuVariants::add_sinks(const AttentionSinkArguments& call) { cpu::add_sinks(call); }
void CpuVariants::sink_gradient(const SinkGradientArguments& call) { cpu::sink_gradient(call); }
void CpuVariants::merge_part(const MergedPartArguments& call) { cpu::merge_part(call); }

void CpuVariants::dropout(const DropoutArguments& call) {
  cpu::dropout<float>(call.shape, floats(call.x), call.bias.as<const float>(),
                      call.residual.as<const float>(), floats(call.out),
                      call.mask.as<std::int8_t>());
}

void CpuVariants::dropout_backward(const DropoutGradientArguments& call) {
  cpu::dropout_backward<float>(call.shape, floats(call.gradient), call.mask.as<const std::int8_t>(),
                               floats(call.out));
}

void CpuVariants::route(const RouteArguments& call) {
  cpu::route<float>(call.shape, floats(call.logits), integers(call.choice),
                    floats(call.probabilities), call.chosen.as<std::int8_t>(),
                    call.bias.as<const float>());
}

void CpuVariants::route_backward(const RouteGradientArguments& call) {
  cpu::route_backward<float>(call.shape, floats(call.probabilities),
                             call.chosen.as<const std::int8_t>(), floats(call.weight_gradient),
                             floats(call.logits_gradient));
}

void CpuVariants::choose_rows(const ChosenRowsArguments& call) {
  cpu::choose_rows<float>(call.shape, floats(call.probabilities),
                          call.chosen.as<const std::int8_t>(), call.token_of_row.as<std::int64_t>(),
                          floats(call.weights));
}

void CpuVariants::take_rows(const MovedRowsArguments& call) {
  cpu::take_rows<float>(floats(call.from), integers(call.index), floats(call.to), call.rows,
                        call.width);
}
void CpuVariants::put_rows(const MovedRowsArguments& call) {
  cpu::put_rows<float>(floats(call.from), integers(call.index), floats(call.to), call.rows,
                       call.width);
}
void CpuVariants::add_rows(const AddedRowsArguments& call) {
  cpu::add_rows<float>(floats(call.from), integers(call.index), floats(call.to), call.rows,
                       call.targets, call.width);
}

void CpuVariants::expert_activation(const ExpertActivationArguments& call) {
  cpu::expert_activation<float>(call.kind, floats(call.up), floats(call.weights), floats(call.out),
                                call.rows, call.width);
}
void CpuVariants::expert_activation_backward(const ExpertActivationGradientArguments& call) {
  cpu::expert_activation_backward<float>(call.kind, floats(call.up), floats(call.weights),
                                         floats(call.gradient), floats(call.up_gradient),
                                         floats(call.weight_gradient), call.rows, call.width);
}
void CpuVariants::add_weighed_bias(const WeighedBiasArguments& call) {
  cpu::add_weighed_bias<float>(floats(call.data), floats(call.bias), call.weights.as<const float>(),
                               call.rows, call.width);
}
void CpuVariants::weigh_rows(const WeighedRowsArguments& call) {
  cpu::weigh_rows<float>(floats(call.data), floats(call.weights), floats(call.out), call.rows,
                         call.width);
}
void CpuVariants::bias_products(const BiasProductArguments& call) {
  cpu::bias_products<float>(floats(call.data), floats(call.bias), floats(call.out), call.rows,
                            call.width);
}
void CpuVariants::step_by_sign(const SignStepArguments& call) {
  STEPCAST_ASSERT(!call.rounded, "weights in fp32 are not rounded");
  cpu::step_by_sign<float>(floats(call.gradient), floats(call.weight), call.rate, call.count);
}

}  // namespace stepcast
