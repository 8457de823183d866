// SPDX-License-Identifier: Apache-2.0
#include "program/prediction_module.h"

#include "layout/scenario.h"
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

BufferId PredictionModule::forward(BufferId hidden, RecomputeMode mode) {
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
  return layer_.forward(whole_rows(saved_.projected.y), mode);
}

JoinColumns PredictionModule::columns(bool backward) const {
  const Shape& shape = builder_.shape();
  const std::int64_t h = shape.hidden, all = shape.tokens * h;
  // Columns are put together for all rows, also where this rank then has some of them.
  const double bytes = 2.0 * static_cast<double>((backward ? all / shape.tp : all) * shape.element);
  const KernelSize size = backward ? KernelSize{all / shape.tp, h / shape.tp, bytes}
                                   : KernelSize{shape.rows * h, h, bytes};
  return {backward, shape.tokens, shape.tp, shape.type, size};
}

// Each tensor parallel rank has made its columns of all tokens (Megatron:
// gather_from_tensor_model_parallel_region, then scatter_to_sequence_parallel_region).
BufferId PredictionModule::whole_rows(BufferId own) {
  const Shape& shape = builder_.shape();
  if (shape.tp == 1) return own;
  const std::int64_t all = shape.tokens * shape.hidden;
  const BufferId gathered = builder_.activation("mtp_gathered_columns", all);
  builder_.collective("mtp_gather_columns", CollectiveKind::kAllGather, AxisGroup::kTensor, all,
                      shape.type, {own}, {gathered});
  std::get<Collective>(builder_.last().work).overlapped = false;
  const BufferId out = builder_.activation("mtp_layer_input", shape.rows * shape.hidden);
  builder_.add("mtp_join_columns", columns(false), {gathered}, {out});
  return out;
}

// Every rank has the gradient of all its rows: it takes its own columns of them.
BufferId PredictionModule::own_columns(BufferId gradient) {
  const Shape& shape = builder_.shape();
  if (shape.tp == 1) return gradient;
  const BufferId whole = builder_.leave_backward("mtp_rows_gradient", gradient);
  const BufferId out =
      builder_.activation("mtp_columns_gradient", shape.tokens * shape.hidden / shape.tp);
  builder_.add("mtp_join_columns", columns(true), {whole}, {out});
  return out;
}

void PredictionModule::recompute() { layer_.recompute(); }

BufferId PredictionModule::backward(BufferId gradient, RecomputeMode mode) {
  const Shape& shape = builder_.shape();
  const std::int64_t h = shape.hidden, rows = shape.rows * h;
  const double e = static_cast<double>(shape.element);
  const BufferId columns = own_columns(layer_.backward(gradient, mode));
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
