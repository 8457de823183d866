// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/variant_kernels.h"

namespace stepcast {

// Computes in fp32, on the calling thread.
class CpuVariants final : public VariantKernels {
 public:
  void latent_rotary(const LatentRotaryArguments& call) override;
  void latent_rotary_backward(const LatentRotaryGradientArguments& call) override;
  void copy_columns(const CopyColumnsArguments& call) override;
  void spread_rows(const SpreadRowsArguments& call) override;
  void add_sinks(const AttentionSinkArguments& call) override;
  void sink_gradient(const SinkGradientArguments& call) override;
  void merge_part(const MergedPartArguments& call) override;

  void dropout(const DropoutArguments& call) override;
  void dropout_backward(const DropoutGradientArguments& call) override;

  void route(const RouteArguments& call) override;
  void route_backward(const RouteGradientArguments& call) override;
  void choose_rows(const ChosenRowsArguments& call) override;
  void take_rows(const MovedRowsArguments& call) override;
  void put_rows(const MovedRowsArguments& call) override;
  void add_rows(const AddedRowsArguments& call) override;
  void expert_activation(const ExpertActivationArguments& call) override;
  void expert_activation_backward(const ExpertActivationGradientArguments& call) override;
  void add_weighed_bias(const WeighedBiasArguments& call) override;
  void weigh_rows(const WeighedRowsArguments& call) override;
  void bias_products(const BiasProductArguments& call) override;
  void step_by_sign(const SignStepArguments& call) override;
};

}  // namespace stepcast
