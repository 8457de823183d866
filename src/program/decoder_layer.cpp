// SPDX-License-Identifier: Apache-2.0
#include "program/decoder_layer.h"

#include "program/block_builder.h"
#include "program/fp8_operands.h"
#include "program/layer_lowering.h"
#include "program/liveness.h"
#include "program/unit_copies.h"

namespace stepcast {

Block lower_decoder_layer(const Scenario& scenario, RecomputeMode recompute, BackwardForm form,
                          LayerKind kind) {
  Block block;
  block.form = form;
  block.kind = BlockKind::kLayer;
  const Shape shape(scenario);
  BlockBuilder builder(scenario.rules, shape, gradient_mode(scenario), block);
  LayerLowering layer(scenario, kind, builder);
  const std::int64_t elements = shape.rows * shape.hidden;
  block.input = builder.activation("layer_input", elements);
  block.output_gradient = builder.activation("output_gradient", elements);

  builder.into(Pass::kForward, Phase::kForward);
  copy_gathered_unit(scenario, builder);
  block.output = layer.forward(block.input, recompute);

  if (recompute == RecomputeMode::kFull) layer.recompute();
  builder.into_input_gradients();
  if (scenario.layout.zero == 3) copy_gathered_unit(scenario, builder);
  block.input_gradient = layer.backward(block.output_gradient, recompute);
  copy_unit_gradients(scenario, builder);
  cast_in_norms(builder);
  finish_block(block);
  return block;
}

}  // namespace stepcast
