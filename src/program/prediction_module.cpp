// SPDX-License-Identifier: Apache-2.0
#include "program/prediction_module.h"

#include "program/embedding_block.h"

namespace stepcast {
namespace {

// A layer like the model's last, but in fp8 even where the last layers stay in 16 bits: Megatron-LM
// asks for the context of fp8 without a layer's number (multi_token_prediction.py).
LayerKind kind_of_module(const Scenario& scenario) {
  LayerKind kind = kind_of(scenario, scenario.model.layers - 1);
  kind.wide = false;
  return kind;
}

}  // namespace

PredictionModule::PredictionModule(const Scenario& scenario, ParameterId table, std::int64_t ahead,
                                   BlockBuilder& builder)
    : builder_(builder),
      table_(table),
      ahead_(ahead),
      embedding_norm_(
          builder.norm_parameters("mtp_embedding_norm", nullptr, builder.shape().hidden)),
      hidden_norm_(builder.norm_parameters("mtp_hidden_norm", nullptr, builder.shape().hidden)),
      join_(builder,
            {"mtp_join", "mtp_join_dgrad", "mtp_join_wgrad", "mtp_projected", "mtp_join_gradient"},
            {"mtp_join", builder.shape().hidden / builder.shape().tp, 2 * builder.shape().hidden,
             Cut::kRows},
            false),
      layer_(scenario, kind_of_module(scenario), builder) {}

BufferId PredictionModule::forward(BufferId hidden) {
  const Shape& shape = builder_.shape();
  const std::int64_t h = shape.hidden, rows = shape.rows * h, tokens = shape.tokens * h;
  const double e = static_cast<double>(shape.element);
  saved_ = {};
  saved_.hidden = hidden;
  const BufferId found = builder_.activation("mtp_embedded", tokens);
  builder_.add("mtp_embedding",
               TokenEmbedding{false,
                              shape.vocab,
                              shape.type,
                              builder_.gradient_type(),
                              builder_.size(tokens, h, 2 * e, shape.tp > 1 ? 5 : 1),
                              {ahead_}},
               {}, {found});
  builder_.uses({table_});
  saved_.embedded = builder_.leave_region("mtp_embedded", found);
  const BufferId of_token =
      builder_.norm("mtp_embedding_norm", embedding_norm_, saved_.embedded, shape.rows, h);
  const BufferId of_hidden = builder_.norm("mtp_hidden_norm", hidden_norm_, hidden, shape.rows, h);
  saved_.joined = builder_.activation("mtp_joined", 2 * rows);
  builder_.add("mtp_join_rows", JoinRows{false, shape.type, builder_.size(2 * rows, 2 * h, 2 * e)},
               {of_token, of_hidden}, {saved_.joined});
  saved_.entered = join_.enter(builder_, "mtp_joined", saved_.joined, true);
  saved_.projected = join_.forward(builder_, saved_.entered);
  // Each tensor parallel rank has made its columns of all tokens.
  BufferId input = saved_.projected.y;
  if (shape.tp > 1) {
    input = builder_.activation("mtp_layer_input", rows);
    builder_.collective("mtp_gather_columns", CollectiveKind::kAllGather, AxisGroup::kTensor,
                        tokens, shape.type, {saved_.projected.y}, {input});
  }
  return layer_.forward(input);
}

void PredictionModule::recompute() { layer_.recompute(); }

BufferId PredictionModule::backward(BufferId gradient, RecomputeMode mode) {
  const Shape& shape = builder_.shape();
  const std::int64_t h = shape.hidden, rows = shape.rows * h;
  const double e = static_cast<double>(shape.element);
  BufferId columns = layer_.backward(gradient, mode);
  if (shape.tp > 1) {
    const BufferId own = builder_.activation("mtp_columns_gradient", shape.tokens * h / shape.tp);
    builder_.collective("mtp_scatter_columns", CollectiveKind::kReduceScatter, AxisGroup::kTensor,
                        shape.tokens * h, shape.type, {columns}, {own});
    columns = own;
  }
  const LinearInput gathered = join_.gather_again(builder_, "mtp_joined", saved_.entered);
  const LinearInput flowing = join_.take_gradient(builder_, columns);
  const LinearGradient partial = join_.input_gradient(builder_, flowing);
  const BufferId joined = builder_.enter_backward("mtp_join_gradient", partial.x, 2 * h);
  join_.weight_gradient(builder_, flowing, gathered, saved_.projected, partial);
  const BufferId of_token = builder_.activation("mtp_token_gradient", rows);
  const BufferId of_hidden = builder_.activation("mtp_hidden_gradient", rows);
  builder_.add("mtp_join_rows", JoinRows{true, shape.type, builder_.size(2 * rows, 2 * h, 2 * e)},
               {joined}, {of_token, of_hidden});
  const BufferId embedded = builder_.norm_backward(
      "mtp_embedding_norm", embedding_norm_, saved_.embedded, of_token, BufferId{}, shape.rows, h);
  const BufferId whole = builder_.leave_backward("mtp_embedded_gradient", embedded);
  builder_.among_weight_gradients(
      [&] { look_up_backward(builder_, table_, BufferId{}, whole, true, ahead_); });
  return builder_.norm_backward("mtp_hidden_norm", hidden_norm_, saved_.hidden, of_hidden,
                                BufferId{}, shape.rows, h);
}

}  // namespace stepcast
