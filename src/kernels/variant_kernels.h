// SPDX-License-Identifier: Apache-2.0
// Kernels of layers that are no plain attention and MLP (docs/moe.md): latent attention, sinks of
// attention, prediction modules and mixtures of experts; those of context parallelism; and dropout.
// Scores, routing weights and their gradients are fp32. Formulas are those of the functions of the
// same names in kernels/cpu.
#pragma once

#include "kernels/arguments.h"

namespace stepcast {

class VariantKernels {
 public:
  virtual ~VariantKernels() = default;

  virtual void latent_rotary(const LatentRotaryArguments& call) = 0;
  virtual void latent_rotary_backward(const LatentRotaryGradientArguments& call) = 0;
  virtual void copy_columns(const CopyColumnsArguments& call) = 0;
  virtual void spread_rows(const SpreadRowsArguments& call) = 0;
  virtual void add_sinks(const AttentionSinkArguments& call) = 0;
  virtual void sink_gradient(const SinkGradientArguments& call) = 0;
  virtual void merge_part(const MergedPartArguments& call) = 0;

  // out = the kept elements of x (+ bias), scaled, (+ residual).
  virtual void dropout(const DropoutArguments& call) = 0;
  virtual void dropout_backward(const DropoutGradientArguments& call) = 0;

  virtual void route(const RouteArguments& call) = 0;
  virtual void route_backward(const RouteGradientArguments& call) = 0;
  virtual void choose_rows(const ChosenRowsArguments& call) = 0;
  virtual void take_rows(const MovedRowsArguments& call) = 0;
  virtual void put_rows(const MovedRowsArguments& call) = 0;
  virtual void add_rows(const AddedRowsArguments& call) = 0;
  virtual void expert_activation(const ExpertActivationArguments& call) = 0;
  virtual void expert_activation_backward(const ExpertActivationGradientArguments& call) = 0;
  virtual void add_weighed_bias(const WeighedBiasArguments& call) = 0;
  virtual void weigh_rows(const WeighedRowsArguments& call) = 0;
  virtual void bias_products(const BiasProductArguments& call) = 0;
  virtual void step_by_sign(const SignStepArguments& call) = 0;
};

}  // namespace stepcast
