// SPDX-License-Identifier: Apache-2.0
// Attention as graphs that cuDNN knows as such and fuses: Dao 2023, in the pattern of nodes of
// NVIDIA, "cuDNN", fused flash attention.
#pragma once

#include "kernels/cuda/attention_problem.h"
#include "kernels/cuda/cudnn/graph.h"

namespace stepcast::cuda {

struct ForwardGraph {
  explicit ForwardGraph(const AttentionProblem& problem);

  Graph graph;
  Graph::Tensor query, key, value, context, log_sum_exp;
  Graph::Tensor scale;   // by value: 1/sqrt(head_dim)
  Graph::Tensor hidden;  // by value: the score of a key that is masked; causal masks alone have it
};

struct BackwardGraph {
  // `deterministic`: gradients of queries are summed by one block each, from scores' gradients in
  // memory; otherwise by atomics, in fp32.
  BackwardGraph(const AttentionProblem& problem, bool deterministic);

  Graph graph;
  Graph::Tensor query, key, value, context, log_sum_exp, context_gradient;
  Graph::Tensor query_gradient, key_gradient, value_gradient;
  Graph::Tensor row_products;        // workspace in fp32: batch x heads x sequence
  Graph::Tensor query_sums = 0;      // likewise, x head_dim; 0: deterministic graphs have none
  Graph::Tensor scale, hidden, one;  // by value
};

}  // namespace stepcast::cuda
