// SPDX-License-Identifier: Apache-2.0
// The kernels that run a program's operations: one interface, and an implementation for each kind
// of device (kernels/cpu/cpu_kernels.h, kernels/cuda/cuda_kernels.h). Formulas are those of the
// functions of the same names in kernels/cpu.
#pragma once

#include <cstdint>

#include "kernels/arguments.h"
#include "kernels/variant_kernels.h"

namespace stepcast {

class Kernels {
 public:
  virtual ~Kernels() = default;

  virtual VariantKernels& variants() = 0;

  // C[m,n] = op(A)[m,k] op(B)[k,n] + (accumulate ? C : 0) (+ bias by columns).
  virtual void gemm(const GemmArguments& call) = 0;
  // One after the other, unless a device does better.
  virtual void grouped_gemm(const GroupedGemmArguments& call) {
    for (std::int64_t group = 0; group < call.groups(); ++group) gemm(call.of(group));
  }

  // The next three make what products in fp8 read (docs/fp8.md).
  virtual void find_largest(const LargestArguments& call) = 0;
  virtual void cast_to_fp8(const Fp8CastArguments& call) = 0;
  virtual void transpose_fp8(const Fp8TransposeArguments& call) = 0;

  virtual void attention(const AttentionArguments& call) = 0;
  virtual void attention_backward(const AttentionGradientArguments& call) = 0;

  virtual void attention_scores(const AttentionScoresArguments& call) = 0;
  virtual void masked_softmax(const AttentionShape& shape, Array scores, Array probabilities) = 0;
  virtual void attention_context(const HeadProductArguments& call) = 0;
  virtual void context_transpose(const AttentionShape& shape, Array by_head, HeadArray context) = 0;
  virtual void context_transpose_backward(const AttentionShape& shape, HeadArray context_gradient,
                                          Array by_head) = 0;
  virtual void probabilities_gradient(const HeadProductArguments& call) = 0;
  virtual void value_gradient(const ValueGradientArguments& call) = 0;
  virtual void masked_softmax_backward(const SoftmaxGradientArguments& call) = 0;
  virtual void query_gradient(const HeadProductArguments& call) = 0;
  virtual void key_gradient(const HeadProductArguments& call) = 0;
  virtual void gather_qkv_gradient(const QkvGatherArguments& call) = 0;

  virtual void norm(const NormArguments& call) = 0;
  // sum = branch (+ branch_bias by columns) + residual, and y the norm of it.
  virtual void add_norm(const AddNormArguments& call) = 0;
  virtual void norm_backward(const NormGradientArguments& call) = 0;
  virtual void activation(const ActivationArguments& call) = 0;
  virtual void activation_backward(const ActivationGradientArguments& call) = 0;
  virtual void rotary(const RotaryArguments& call) = 0;
  virtual void bias_gradient(const BiasGradientArguments& call) = 0;

  virtual void add_residual(const ResidualArguments& call) = 0;
  virtual void accumulate(Array more, Array sum, std::int64_t count) = 0;
  virtual void fill(Array data, float value, std::int64_t count) = 0;
  virtual void scale(Array data, float factor, std::int64_t count) = 0;
  virtual void noise(Array data, std::int64_t count) = 0;  // in [-1, 1)
  // Rounds where types differ; fp8 is moved as it is.
  virtual void copy(Array from, Array to, std::int64_t count) = 0;

  virtual void embed_tokens(const EmbeddingArguments& call) = 0;
  virtual void embed_tokens_backward(const EmbeddingGradientArguments& call) = 0;
  virtual void add_positions(const PositionArguments& call) = 0;
  virtual void add_positions_backward(const PositionArguments& call) = 0;

  virtual void cross_entropy(const LossArguments& call) = 0;
  virtual void cross_entropy_backward(const LossGradientArguments& call) = 0;
  // sum[i] *= exp(local_largest[i] - largest[i]): to the largest logit of all slices.
  virtual void rescale_sums(const RescaleArguments& call) = 0;
  // *total += sum over rows of log(sum) + largest - target.
  virtual void add_loss(const LossSumArguments& call) = 0;

  // *total += the sum of squares.
  virtual void add_squares(Array data, std::int64_t count, double* total) = 0;
  virtual void narrow(const double* from, float* to) = 0;
  virtual void adamw(const AdamWArguments& call) = 0;
};

}  // namespace stepcast
