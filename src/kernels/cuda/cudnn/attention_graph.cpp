// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cudnn/attention_graph.h"

namespace stepcast::cuda {
namespace {

// Heads inside rows of tokens, as batch x heads x sequence x head_dim.
Layout heads_of(const AttentionShape& shape, std::int64_t heads, std::int64_t stride) {
  return {{shape.batch, heads, shape.sequence, shape.head_dim},
          {shape.sequence * stride, shape.head_dim, stride, 1}};
}
Four scores_of(const AttentionShape& shape) {
  return {shape.batch, shape.heads, shape.sequence, shape.key_rows()};
}
Four rows_of(const AttentionShape& shape) { return {shape.batch, shape.heads, shape.sequence, 1}; }

cudnnDataType_t type_of(const AttentionProblem& problem) {
  return problem.type == DataType::kBf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF;
}

// Keys after their query get `hidden` for a score.
Graph::Tensor masked(Graph& graph, Graph::Tensor scores, Graph::Tensor hidden) {
  const Graph::Tensor row = graph.like(scores, CUDNN_DATA_INT32);
  const Graph::Tensor column = graph.like(scores, CUDNN_DATA_INT32);
  graph.indices(scores, 2, row);
  graph.indices(scores, 3, column);
  const Graph::Tensor seen = graph.like(scores, CUDNN_DATA_BOOLEAN);
  graph.pointwise(CUDNN_POINTWISE_CMP_GE, row, column, seen, CUDNN_DATA_BOOLEAN);
  const Graph::Tensor out = graph.like(scores);
  graph.select(scores, hidden, seen, out);
  return out;
}

Graph::Tensor combined(Graph& graph, cudnnPointwiseMode_t mode, Graph::Tensor x, Graph::Tensor b,
                       cudnnDataType_t type = CUDNN_DATA_FLOAT) {
  const Graph::Tensor out = graph.like(x, type);
  graph.pointwise(mode, x, b, out);
  return out;
}

Graph::Tensor exponential(Graph& graph, Graph::Tensor x) {
  const Graph::Tensor out = graph.like(x);
  graph.pointwise(CUDNN_POINTWISE_EXP, x, out);
  return out;
}

// transposed(probabilities or their like) times rows of queries: one result per query head, summed
// over those that share keys.
void sum_over_queries(Graph& graph, const AttentionProblem& problem, Graph::Tensor scores,
                      Graph::Tensor rows, Graph::Tensor out) {
  const AttentionShape& shape = problem.shape;
  const Graph::Tensor by_key = graph.transpose(scores, type_of(problem));
  if (shape.heads == shape.kv_heads) return graph.matmul(by_key, rows, out);
  const Graph::Tensor by_head =
      graph.inner({shape.batch, shape.heads, shape.key_rows(), shape.head_dim}, type_of(problem));
  graph.matmul(by_key, rows, by_head);
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, by_head, out);
}

}  // namespace

ForwardGraph::ForwardGraph(const AttentionProblem& problem) {
  const AttentionShape& shape = problem.shape;
  const AttentionShape of_keys = shape.of_keys();
  query = graph.real(heads_of(shape, shape.heads, problem.query), type_of(problem));
  key = graph.real(transposed(heads_of(of_keys, shape.kv_heads, problem.key)), type_of(problem));
  value = graph.real(heads_of(of_keys, shape.kv_heads, problem.value), type_of(problem));
  context = graph.real(heads_of(shape, shape.heads, problem.context), type_of(problem));
  log_sum_exp = graph.real(packed(rows_of(shape)), CUDNN_DATA_FLOAT);
  scale = graph.value();
  hidden = shape.causal ? graph.value() : 0;

  const Graph::Tensor products = graph.inner(scores_of(shape));
  graph.matmul(query, key, products);
  Graph::Tensor scores = combined(graph, CUDNN_POINTWISE_MUL, products, scale);
  if (shape.causal) scores = masked(graph, scores, hidden);

  const Graph::Tensor largest = graph.inner(rows_of(shape)), sum = graph.inner(rows_of(shape));
  graph.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, largest);
  const Graph::Tensor weights =
      exponential(graph, combined(graph, CUDNN_POINTWISE_SUB, scores, largest));
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, weights, sum);
  const Graph::Tensor logarithm = graph.inner(rows_of(shape));
  graph.pointwise(CUDNN_POINTWISE_LOG, sum, logarithm);
  graph.pointwise(CUDNN_POINTWISE_ADD, largest, logarithm, log_sum_exp);
  const Graph::Tensor probabilities =
      combined(graph, CUDNN_POINTWISE_DIV, weights, sum, type_of(problem));
  graph.matmul(probabilities, value, context);
}

BackwardGraph::BackwardGraph(const AttentionProblem& problem, bool deterministic) {
  const AttentionShape& shape = problem.shape;
  const auto of_heads = [&](std::int64_t heads, std::int64_t stride) {
    return heads_of(shape, heads, stride);
  };
  query = graph.real(of_heads(shape.heads, problem.query), type_of(problem));
  const auto of_keys = [&](std::int64_t stride) {
    return heads_of(shape.of_keys(), shape.kv_heads, stride);
  };
  key = graph.real(transposed(of_keys(problem.key)), type_of(problem));
  value = graph.real(transposed(of_keys(problem.value)), type_of(problem));
  context = graph.real(of_heads(shape.heads, problem.context), type_of(problem));
  log_sum_exp = graph.real(packed(rows_of(shape)), CUDNN_DATA_FLOAT);
  context_gradient = graph.real(of_heads(shape.heads, problem.context_gradient), type_of(problem));
  query_gradient = graph.real(of_heads(shape.heads, problem.query_gradient), type_of(problem));
  key_gradient = graph.real(of_keys(problem.key_gradient), type_of(problem));
  value_gradient = graph.real(of_keys(problem.value_gradient), type_of(problem));
  row_products = graph.real(packed(rows_of(shape)), CUDNN_DATA_FLOAT);
  scale = graph.value();
  hidden = shape.causal ? graph.value() : 0;
  one = graph.value();

  // context . context_gradient of each row; the pattern has a factor, which without dropout is 1.
  const Graph::Tensor contexts = combined(graph, CUDNN_POINTWISE_MUL, context_gradient, context);
  const Graph::Tensor sums = graph.inner(rows_of(shape));
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, contexts, sums);
  graph.pointwise(CUDNN_POINTWISE_MUL, sums, one, row_products);

  // Probabilities again, and the gradient of values.
  const Graph::Tensor products = graph.inner(scores_of(shape));
  graph.matmul(query, key, products);
  Graph::Tensor scores = combined(graph, CUDNN_POINTWISE_MUL, products, scale);
  scores = combined(graph, CUDNN_POINTWISE_SUB, scores, log_sum_exp);
  if (shape.causal) scores = masked(graph, scores, hidden);
  const Graph::Tensor probabilities = exponential(graph, scores);
  sum_over_queries(graph, problem, probabilities, context_gradient, value_gradient);

  // Gradient of scores, and of keys.
  const Graph::Tensor gradients = graph.inner(scores_of(shape));
  graph.matmul(context_gradient, value, gradients);
  Graph::Tensor by_score = combined(graph, CUDNN_POINTWISE_SUB, gradients, row_products);
  by_score = combined(graph, CUDNN_POINTWISE_MUL, by_score, probabilities);
  by_score = combined(graph, CUDNN_POINTWISE_MUL, by_score, scale, CUDNN_DATA_FLOAT);
  sum_over_queries(graph, problem, by_score, query, key_gradient);

  // Gradient of queries.
  const Graph::Tensor keys = graph.transpose(key, type_of(problem));
  if (deterministic) {
    graph.matmul(by_score, keys, query_gradient);
    return;
  }
  query_sums = graph.real(packed({shape.batch, shape.heads, shape.sequence, shape.head_dim}),
                          CUDNN_DATA_FLOAT);
  graph.matmul(by_score, keys, query_sums);
  graph.pointwise(CUDNN_POINTWISE_IDENTITY, query_sums, query_gradient);
}

}  // namespace stepcast::cuda
