// SPDX-License-Identifier: Apache-2.0
#include "program/embedding_block.h"

#include <optional>

#include "layout/pipeline.h"
#include "layout/scenario.h"
#include "program/linear.h"
#include "program/liveness.h"
#include "program/unit_copies.h"

namespace stepcast {
namespace {

struct EmbeddingBuffers {
  BufferId summed;  // what the embedding norm reads
  BufferId mask;
  LinearInput narrow;  // what the projection to the model's width reads
  LinearOutput wide;
};

struct EmbeddingWeights {
  ParameterId table, positions;
  std::optional<Linear> projection;  // of a table narrower or wider than the model (OPT-350M)
  std::vector<ParameterId> norm;
};

EmbeddingWeights declare_embedding(const Scenario& scenario, BlockBuilder& builder) {
  const Shape& shape = builder.shape();
  const Model& model = scenario.model;
  EmbeddingWeights out;
  Parameter table{"table", shape.vocab, shape.table_width, Cut::kRows};
  table.is_table = true;
  out.table = builder.parameter(table);
  out.projection = table_projection(builder,
                                    {"project_in", "project_in_dgrad", "project_in_wgrad",
                                     "embedding_projected", "embedding_gradient"},
                                    shape.hidden, shape.table_width);
  if (model.position == Position::kLearned) {
    out.positions =
        builder.parameter({"positions", model.max_positions + model.position_offset, shape.hidden});
  }
  if (model.embedding_norm) {
    out.norm = builder.norm_parameters(
        "embedding_norm", model.norm_bias ? "embedding_norm_bias" : nullptr, shape.hidden);
  }
  return out;
}

PositionEmbedding positions(const Scenario& scenario, const BlockBuilder& builder, bool backward,
                            const KernelSize& size) {
  const Model& model = scenario.model;
  const Shape& shape = builder.shape();
  return {backward,
          shape.sequence,
          model.max_positions + model.position_offset,
          model.position_offset,
          shape.type,
          builder.gradient_type(),
          size};
}

EmbeddingBuffers forward(const Scenario& scenario, const EmbeddingWeights& weights,
                         BlockBuilder& builder) {
  EmbeddingBuffers saved;
  const Shape& shape = builder.shape();
  const Model& model = scenario.model;
  Block& block = builder.block();
  const double e = static_cast<double>(shape.element);
  const std::int64_t whole = shape.tokens * shape.table_width, local = shape.rows * shape.hidden;
  builder.into(Pass::kForward, Phase::kForward);
  copy_gathered_unit(scenario, builder);
  BufferId x = builder.activation("embedded", whole);
  // Vocabulary-parallel look-up masks the tokens of other ranks first.
  builder.add("embedding",
              TokenEmbedding{false, shape.vocab, shape.type, builder.gradient_type(),
                             builder.size(whole, shape.table_width, 2 * e, shape.tp > 1 ? 5 : 1)},
              {block.input}, {x});
  builder.uses({weights.table});
  x = builder.leave_region("embedding_reduced", x);
  if (weights.projection) {
    saved.narrow = weights.projection->take(builder, x, true);
    saved.wide = weights.projection->forward(builder, saved.narrow);
    x = saved.wide.y;
  }
  if (model.position == Position::kLearned) {
    builder.add("positions",
                positions(scenario, builder, false, builder.size(local, shape.hidden, 3 * e, 2)),
                {x}, {x});
    builder.uses({weights.positions});
  }
  saved.summed = x;
  if (model.embedding_norm)
    x = builder.norm("embedding_norm", weights.norm, x, shape.rows, shape.hidden);
  block.output = builder.activation("embedding_output", local);
  if (shape.dropout) {
    saved.mask = builder.buffer("dropout_mask", local, DataType::kInt8);
    builder.add("dropout", Dropout{false, shape.type, builder.size(local, 0, 2 * e + 1)}, {x},
                {block.output, saved.mask});
  } else {
    // The sum with the positions is the output itself.
    builder.add("embedding_output", Alias{}, {x}, {block.output});
  }
  return saved;
}

void backward(const Scenario& scenario, const EmbeddingWeights& weights, BlockBuilder& builder,
              const EmbeddingBuffers& saved) {
  const Shape& shape = builder.shape();
  Block& block = builder.block();
  const double e = static_cast<double>(shape.element);
  const std::int64_t local = shape.rows * shape.hidden;
  builder.into_input_gradients();
  if (!builder.trains(weights.table)) {
    builder.add("output_gradient", Alias{}, {block.output_gradient}, {});  // read by nobody
    return;
  }
  BufferId gradient = block.output_gradient;
  if (shape.dropout) {
    const BufferId dropped = builder.activation("embedding_gradient", local);
    builder.add("dropout", Dropout{true, shape.type, builder.size(local, 0, 2 * e + 1)},
                {gradient, saved.mask}, {dropped});
    gradient = dropped;
  }
  if (scenario.model.embedding_norm) {
    gradient = builder.norm_backward("embedding_norm", weights.norm, saved.summed, gradient,
                                     BufferId{}, shape.rows, shape.hidden);
  }
  if (scenario.model.position == Position::kLearned) {
    builder.among_weight_gradients([&] {
      builder.add("position_gradient",
                  positions(scenario, builder, true, builder.size(local, shape.hidden, 2 * e, 3)),
                  {gradient}, {});
      builder.uses({weights.positions});
    });
  }
  if (weights.projection) {
    const LinearInput flowing = weights.projection->take_gradient(builder, gradient);
    const LinearGradient narrow = weights.projection->input_gradient(builder, flowing);
    weights.projection->weight_gradient(builder, flowing, saved.narrow, saved.wide, narrow);
    gradient = narrow.x;
  }
  gradient = builder.leave_backward("embedding_gradient", gradient);
  // The head of a tied table, where it is on this stage, has written the unit's gradient before.
  const bool tied = scenario.model.tied_embeddings && ends_meet(scenario.layout);
  const bool zeroes = builder.mode() != GradientMode::kUnit || !tied;
  builder.among_weight_gradients(
      [&] { look_up_backward(builder, weights.table, block.input, gradient, zeroes); });
}

}  // namespace

void look_up_backward(BlockBuilder& builder, ParameterId table, BufferId tokens, BufferId gradient,
                      bool zeroes, std::int64_t ahead) {
  const Shape& shape = builder.shape();
  const double e = static_cast<double>(shape.element);
  const std::int64_t whole = shape.tokens * shape.table_width, elements = shape.table_elements();
  const bool into_unit = builder.mode() == GradientMode::kUnit;
  const BufferId dense =
      into_unit ? BufferId{} : builder.fresh_gradient("table_gradient", elements);
  const auto write = [&](Operation::Work work, BlockBuilder::Buffers reads) {
    if (into_unit) {
      builder.add("table_gradient", std::move(work), reads, {});
    } else {
      builder.add("table_gradient", std::move(work), reads, {dense});
    }
    builder.uses({table});
  };
  if (zeroes) write(ZeroTableGradient{shape.type, builder.size(elements, 0, e)}, {});
  write(TokenEmbedding{true,
                       shape.vocab,
                       shape.type,
                       shape.type,
                       builder.size(whole, shape.table_width, 3 * e, 4),
                       {ahead}},
        {tokens, gradient});
  if (!into_unit) builder.accumulate(table, elements, dense);
}

Block lower_embedding(const Scenario& scenario, BackwardForm form) {
  const Shape shape(scenario);
  Block block;
  block.kind = BlockKind::kEmbedding;
  block.form = form;
  BlockBuilder builder(scenario.rules, shape, gradient_mode(scenario), block);
  block.input = builder.buffer("tokens", shape.tokens, DataType::kInt64);
  block.output_gradient = builder.activation("output_gradient", shape.rows * shape.hidden);
  const EmbeddingWeights weights = declare_embedding(scenario, builder);
  backward(scenario, weights, builder, forward(scenario, weights, builder));
  copy_unit_gradients(scenario, builder);
  finish_block(block);
  return block;
}

}  // namespace stepcast
