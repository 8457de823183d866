// SPDX-License-Identifier: Apache-2.0
#include "program/embedding_block.h"

#include "program/block_builder.h"
#include "program/liveness.h"

namespace stepcast {
namespace {

struct EmbeddingBuffers {
  BufferId summed;  // what the embedding norm reads
  BufferId mask;
};

struct EmbeddingWeights {
  ParameterId table, positions;
  std::vector<ParameterId> norm;
};

EmbeddingWeights declare(const Scenario& scenario, BlockBuilder& builder) {
  const Shape& shape = builder.shape();
  const Model& model = scenario.model;
  EmbeddingWeights out;
  out.table = builder.parameter({"table", shape.vocab, shape.hidden, Cut::kRows});
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

EmbeddingBuffers forward(const Scenario& scenario, const EmbeddingWeights& weights,
                         BlockBuilder& builder) {
  EmbeddingBuffers saved;
  const Shape& shape = builder.shape();
  const Model& model = scenario.model;
  Block& block = builder.block();
  const double e = static_cast<double>(shape.element);
  const std::int64_t whole = shape.tokens * shape.hidden, local = shape.rows * shape.hidden;
  builder.into(block.forward, Phase::kForward);
  BufferId x = builder.activation("embedded", whole);
  // Vocabulary-parallel look-up masks the tokens of other ranks first.
  builder.elementwise("embedding", ElementwiseKind::kEmbedding, whole, shape.hidden, 2 * e,
                      {block.input}, {x}, false, shape.tp > 1 ? 5 : 1);
  builder.uses({weights.table});
  x = builder.leave_region("embedding_reduced", x);
  if (model.position == Position::kLearned) {
    builder.elementwise("positions", ElementwiseKind::kEmbedding, local, shape.hidden, 3 * e, {x},
                        {x}, false, 2);
    builder.uses({weights.positions});
  }
  saved.summed = x;
  if (model.embedding_norm)
    x = builder.norm("embedding_norm", weights.norm, x, shape.rows, shape.hidden);
  block.output = builder.activation("embedding_output", local);
  if (shape.dropout) {
    saved.mask = builder.buffer("dropout_mask", local, DataType::kInt8);
    builder.elementwise("dropout", ElementwiseKind::kDropoutAdd, local, 0, 2 * e + 1, {x},
                        {block.output, saved.mask});
  } else {
    // The sum with the positions is the output itself.
    builder.elementwise("embedding_output", ElementwiseKind::kCast, 0, 0, 0, {x}, {block.output},
                        false, 0);
  }
  return saved;
}

void backward(const Scenario& scenario, const EmbeddingWeights& weights, BlockBuilder& builder,
              const EmbeddingBuffers& saved) {
  const Shape& shape = builder.shape();
  Block& block = builder.block();
  const double e = static_cast<double>(shape.element);
  const std::int64_t whole = shape.tokens * shape.hidden, local = shape.rows * shape.hidden;
  const std::int64_t table = shape.vocab * shape.hidden;
  builder.into(block.backward, Phase::kBackward);
  if (!builder.trains(weights.table)) {
    builder.elementwise("output_gradient", ElementwiseKind::kCast, 0, 0, 0, {block.output_gradient},
                        {}, true, 0);  // read by nobody
    return;
  }
  BufferId gradient = block.output_gradient;
  if (shape.dropout) {
    const BufferId dropped = builder.activation("embedding_gradient", local);
    builder.elementwise("dropout", ElementwiseKind::kDropoutAdd, local, 0, 2 * e + 1,
                        {gradient, saved.mask}, {dropped}, true);
    gradient = dropped;
  }
  if (scenario.model.embedding_norm) {
    gradient = builder.norm_backward("embedding_norm", weights.norm, saved.summed, gradient,
                                     BufferId{}, shape.rows, shape.hidden);
  }
  if (scenario.model.position == Position::kLearned) {
    builder.elementwise("position_gradient", ElementwiseKind::kEmbedding, local, shape.hidden,
                        2 * e, {gradient}, {}, true, 3);
    builder.uses({weights.positions});
  }
  gradient = builder.leave_backward("embedding_gradient", gradient);
  // Autograd writes a dense gradient of the table, zeroes first, then adds it to the main one.
  if (builder.mode() == GradientMode::kUnit) {
    // The head of a tied table has written it before.
    if (!scenario.model.tied_embeddings) {
      builder.elementwise("table_gradient", ElementwiseKind::kFill, table, 0, e, {}, {}, true);
      builder.uses({weights.table});
    }
    builder.elementwise("table_gradient", ElementwiseKind::kEmbedding, whole, shape.hidden, 3 * e,
                        {block.input, gradient}, {}, true, 4);
    builder.uses({weights.table});
    return;
  }
  const BufferId dense =
      builder.buffer("table_gradient", table, shape.type, MemoryCategory::kGradients);
  builder.elementwise("table_gradient", ElementwiseKind::kFill, table, 0, e, {}, {dense}, true);
  builder.uses({weights.table});
  builder.elementwise("table_gradient", ElementwiseKind::kEmbedding, whole, shape.hidden, 3 * e,
                      {block.input, gradient}, {dense}, true, 4);
  builder.uses({weights.table});
  builder.elementwise("accumulate_gradient", ElementwiseKind::kAccumulate, table, 0,
                      e + 2.0 * static_cast<double>(size_of(shape.gradient)), {dense}, {}, true);
  builder.uses({weights.table});
}

}  // namespace

Block lower_embedding(const Scenario& scenario) {
  const Shape shape(scenario);
  Block block;
  block.name = "embedding";
  BlockBuilder builder(shape, gradient_mode(scenario), block);
  block.input = builder.buffer("tokens", shape.tokens, DataType::kInt64);
  block.output_gradient = builder.activation("output_gradient", shape.rows * shape.hidden);
  const EmbeddingWeights weights = declare(scenario, builder);
  backward(scenario, weights, builder, forward(scenario, weights, builder));
  finish_block(block);
  return block;
}

}  // namespace stepcast
