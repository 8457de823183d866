// SPDX-License-Identifier: Apache-2.0
#include "program/embedding.h"

#include "program/block_builder.h"
#include "program/liveness.h"

namespace stepcast {
namespace {

struct EmbeddingBuffers {
  BufferId summed;  // what the embedding norm reads
  BufferId mask;
};

EmbeddingBuffers forward(const Scenario& scenario, BlockBuilder& builder) {
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
  x = builder.leave_region("embedding_reduced", x);
  if (model.position == Position::kLearned) {
    builder.elementwise("positions", ElementwiseKind::kEmbedding, local, shape.hidden, 3 * e, {x},
                        {x}, false, 2);
  }
  saved.summed = x;
  if (model.embedding_norm) x = builder.norm("embedding_norm", x, shape.rows, shape.hidden);
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

void backward(const Scenario& scenario, BlockBuilder& builder, const EmbeddingBuffers& saved) {
  const Shape& shape = builder.shape();
  Block& block = builder.block();
  const double e = static_cast<double>(shape.element);
  const std::int64_t whole = shape.tokens * shape.hidden, local = shape.rows * shape.hidden;
  const std::int64_t table = shape.vocab * shape.hidden;
  builder.into(block.backward, Phase::kBackward);
  BufferId gradient = block.output_gradient;
  if (shape.dropout) {
    const BufferId dropped = builder.activation("embedding_gradient", local);
    builder.elementwise("dropout", ElementwiseKind::kDropoutAdd, local, 0, 2 * e + 1,
                        {gradient, saved.mask}, {dropped}, true);
    gradient = dropped;
  }
  if (scenario.model.embedding_norm) {
    gradient = builder.norm_backward("embedding_norm", saved.summed, gradient, BufferId{},
                                     shape.rows, shape.hidden);
  }
  if (scenario.model.position == Position::kLearned) {
    builder.elementwise("position_gradient", ElementwiseKind::kEmbedding, local, shape.hidden,
                        2 * e, {gradient}, {}, true, 3);
  }
  gradient = builder.leave_backward("embedding_gradient", gradient);
  // Autograd writes a dense gradient of the table, zeroes first, then adds it to the main one.
  if (builder.mode() == GradientMode::kUnit) {
    builder.elementwise("table_gradient", ElementwiseKind::kFill, table, 0, e, {}, {}, true);
    builder.elementwise("table_gradient", ElementwiseKind::kEmbedding, whole, shape.hidden, 3 * e,
                        {block.input, gradient}, {}, true, 4);
    return;
  }
  const BufferId dense =
      builder.buffer("table_gradient", table, shape.type, MemoryCategory::kGradients);
  builder.elementwise("table_gradient", ElementwiseKind::kFill, table, 0, e, {}, {dense}, true);
  builder.elementwise("table_gradient", ElementwiseKind::kEmbedding, whole, shape.hidden, 3 * e,
                      {block.input, gradient}, {dense}, true, 4);
  builder.elementwise("accumulate_gradient", ElementwiseKind::kAccumulate, table, 0,
                      e + 2.0 * static_cast<double>(size_of(shape.gradient)), {dense}, {}, true);
}

}  // namespace

Block lower_embedding(const Scenario& scenario) {
  const Shape shape(scenario);
  const Model& model = scenario.model;
  Block block;
  block.name = "embedding";
  block.parameters.sharded = shape.vocab * shape.hidden;
  if (model.position == Position::kLearned) {
    block.parameters.replicated += (model.max_positions + model.position_offset) * shape.hidden;
  }
  if (model.embedding_norm) {
    block.parameters.replicated += shape.hidden * (model.norm_bias ? 2 : 1);
  }

  BlockBuilder builder(shape, gradient_mode(scenario), block);
  block.input = builder.buffer("tokens", shape.tokens, DataType::kInt64);
  block.output_gradient = builder.activation("output_gradient", shape.rows * shape.hidden);
  backward(scenario, builder, forward(scenario, builder));
  trace_memory(block);
  return block;
}

}  // namespace stepcast
