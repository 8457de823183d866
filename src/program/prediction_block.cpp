// SPDX-License-Identifier: Apache-2.0
#include "program/prediction_block.h"

#include <memory>
#include <utility>
#include <vector>

#include "layout/scenario.h"
#include "program/block_builder.h"
#include "program/fp8_operands.h"
#include "program/liveness.h"
#include "program/prediction_module.h"

namespace stepcast {
namespace {

// Megatron cuts the states out of one tensor and joins them to one
// (megatron/core/transformer/multi_token_prediction.py: get_mtp_layer_offset and torch.cat).
JoinRows join_of(const BlockBuilder& builder, std::int64_t states, bool backward) {
  const Shape& shape = builder.shape();
  const double bytes = 2 * static_cast<double>(shape.element);
  return {backward, shape.type,
          builder.size(states * shape.rows * shape.hidden, shape.hidden, bytes)};
}

}  // namespace

std::int64_t hidden_states_of_head(const Scenario& scenario) {
  return scenario.layout.mtp_apart ? 1 + scenario.model.mtp_layers : 1;
}

Block lower_predictions(const Scenario& scenario, BackwardForm form) {
  const Shape shape(scenario);
  const std::int64_t elements = shape.rows * shape.hidden, states = hidden_states_of_head(scenario);
  const RecomputeMode mode = scenario.layout.recompute.mode;
  Block block;
  block.kind = BlockKind::kPrediction;
  block.form = form;
  BlockBuilder builder(scenario.rules, shape, gradient_mode(scenario), block);
  block.input = builder.activation("prediction_input", elements);
  block.output_gradient = builder.activation("output_gradient", states * elements);
  Parameter table{"table", shape.vocab, shape.table_width, Cut::kRows};
  table.is_table = table.is_copy = true;
  const ParameterId tokens = builder.parameter(table);
  std::vector<std::unique_ptr<PredictionModule>> modules;
  for (std::int64_t ahead = 1; ahead < states; ++ahead) {
    modules.push_back(std::make_unique<PredictionModule>(scenario, tokens, ahead, builder));
  }

  builder.into(Pass::kForward, Phase::kForward);
  std::vector<BufferId> hidden{block.input};
  for (const auto& module : modules) hidden.push_back(module->forward(hidden.back(), mode));
  block.output = builder.activation("hidden_states", states * elements);
  builder.add("join_hidden_states", join_of(builder, states, false), {}, {block.output});
  builder.last().reads = hidden;

  builder.into_input_gradients();
  std::vector<BufferId> gradients;
  for (std::int64_t i = 0; i < states; ++i) {
    gradients.push_back(builder.activation("hidden_gradient", elements));
  }
  builder.add("cut_hidden_gradients", join_of(builder, states, true), {block.output_gradient}, {});
  builder.last().writes = gradients;
  for (std::size_t i = modules.size(); i-- > 0;) {
    if (mode == RecomputeMode::kFull) modules[i]->recompute();
    builder.into_input_gradients();
    const BufferId flowing = modules[i]->backward(gradients[i + 1], mode);
    const BufferId sum = builder.activation("hidden_gradient", elements);
    const double bytes = 3 * static_cast<double>(shape.element);
    builder.add(
        "add_prediction_gradient",
        ResidualAdd{true, false, false, shape.type, builder.size(elements, shape.hidden, bytes)},
        {gradients[i], flowing}, {sum});
    gradients[i] = sum;
  }
  block.input_gradient = gradients.front();
  cast_in_norms(builder);
  finish_block(block);
  return block;
}

}  // namespace stepcast
