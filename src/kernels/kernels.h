// SPDX-License-Identifier: Apache-2.0
// The kernels that run a program's operations: one interface, and an implementation for each kind
// of device (kernels/cpu/cpu_kernels.h, kernels/cuda/cuda_kernels.h). Formulas are those of the
// functions of the same names in kernels/cpu.
//
// Activations and weights of a call have one type; gradients of weights may be fp32 beside it;
// statistics (log-sum-exp, parts of the loss) are fp32. Arrays that may be absent say so.
#pragma once

#include <cstdint>

#include "kernels/adamw.h"
#include "kernels/array.h"
#include "kernels/shapes.h"
#include "kernels/variant_kernels.h"

namespace stepcast {

struct MatrixArray {
  Array array;
  std::int64_t stride;  // elements from one row to the next
  bool transposed = false;
};

// Heads inside rows of tokens, as Heads of kernels/strided.h.
struct HeadArray {
  Array array;
  std::int64_t stride;
};

// Heads before and after their rotation; in place where they are the same.
struct RotaryArrays {
  std::int64_t heads;
  HeadArray in, out;
};

class Kernels {
 public:
  virtual ~Kernels() = default;

  // Null: the device has none.
  virtual VariantKernels* variants() { return nullptr; }

  // C[m,n] = op(A)[m,k] op(B)[k,n] + (accumulate ? C : 0) (+ bias by columns, may be absent).
  virtual void gemm(std::int64_t m, std::int64_t n, std::int64_t k, MatrixArray a, MatrixArray b,
                    MatrixArray c, bool accumulate, Array bias) = 0;

  virtual void attention(const AttentionShape& shape, HeadArray query, HeadArray key,
                         HeadArray value, HeadArray context, Array log_sum_exp) = 0;
  // `workspace`: batch*sequence*heads*head_dim elements of fp32.
  virtual void attention_backward(const AttentionShape& shape, HeadArray query, HeadArray key,
                                  HeadArray value, HeadArray context, Array log_sum_exp,
                                  HeadArray context_gradient, HeadArray query_gradient,
                                  HeadArray key_gradient, HeadArray value_gradient,
                                  Array workspace) = 0;

  virtual void attention_scores(const AttentionShape& shape, HeadArray query, HeadArray key,
                                Array scores) = 0;
  virtual void masked_softmax(const AttentionShape& shape, Array scores, Array probabilities) = 0;
  virtual void attention_context(const AttentionShape& shape, Array probabilities, HeadArray value,
                                 Array by_head) = 0;
  virtual void context_transpose(const AttentionShape& shape, Array by_head, HeadArray context) = 0;
  virtual void context_transpose_backward(const AttentionShape& shape, HeadArray context_gradient,
                                          Array by_head) = 0;
  virtual void probabilities_gradient(const AttentionShape& shape, Array by_head, HeadArray value,
                                      Array gradient) = 0;
  virtual void value_gradient(const AttentionShape& shape, Array probabilities, Array by_head,
                              Array gradient) = 0;
  virtual void masked_softmax_backward(const AttentionShape& shape, Array probabilities,
                                       Array probabilities_gradient, Array scores_gradient) = 0;
  virtual void query_gradient(const AttentionShape& shape, Array scores_gradient, HeadArray key,
                              Array gradient) = 0;
  virtual void key_gradient(const AttentionShape& shape, Array scores_gradient, HeadArray query,
                            Array gradient) = 0;
  virtual void gather_qkv_gradient(const AttentionShape& shape, Array query_gradient,
                                   Array key_gradient, Array value_gradient, HeadArray query,
                                   HeadArray key, HeadArray value) = 0;

  virtual void norm(NormKind kind, Array x, Array weight, Array bias, Array y, std::int64_t rows,
                    std::int64_t width, std::int64_t x_stride, std::int64_t y_stride) = 0;
  // sum = branch (+ branch_bias by columns, may be absent) + residual, and y the norm of it.
  virtual void add_norm(NormKind kind, Array branch, Array branch_bias, Array residual,
                        Array weight, Array bias, Array sum, Array y, std::int64_t rows,
                        std::int64_t width) = 0;
  // `residual` (may be absent) lies as dy does and is added to dx.
  virtual void norm_backward(NormKind kind, Array x, Array weight, Array dy, Array residual,
                             Array dx, Array weight_gradient, Array bias_gradient, bool accumulate,
                             std::int64_t rows, std::int64_t width, std::int64_t x_stride,
                             std::int64_t dy_stride) = 0;
  virtual void activation(ActivationKind kind, Array up, Array bias, Array out, std::int64_t rows,
                          std::int64_t width) = 0;
  // `bias_gradient` (may be absent) gets the sums of up_gradient over the rows.
  virtual void activation_backward(ActivationKind kind, Array up, Array bias, Array gradient,
                                   Array up_gradient, Array bias_gradient, bool accumulate,
                                   std::int64_t rows, std::int64_t width) = 0;
  virtual void rotary(std::int64_t batch, std::int64_t sequence, std::int64_t head_dim,
                      const RotaryArrays& query, const RotaryArrays& key, bool backward) = 0;
  virtual void bias_gradient(Array data, Array gradient, std::int64_t rows, std::int64_t columns,
                             bool accumulate) = 0;

  virtual void add_residual(Array branch, Array bias, Array residual, Array out, std::int64_t rows,
                            std::int64_t columns) = 0;
  virtual void accumulate(Array more, Array sum, std::int64_t count) = 0;
  virtual void fill(Array data, float value, std::int64_t count) = 0;
  virtual void scale(Array data, float factor, std::int64_t count) = 0;
  virtual void noise(Array data, std::int64_t count) = 0;           // in [-1, 1)
  virtual void copy(Array from, Array to, std::int64_t count) = 0;  // rounds where types differ

  // Tokens are int64.
  virtual void embed_tokens(const TableSlice& slice, Array tokens, std::int64_t count, Array table,
                            Array out) = 0;
  virtual void embed_tokens_backward(const TableSlice& slice, Array tokens, std::int64_t count,
                                     Array gradient, Array table_gradient) = 0;
  virtual void add_positions(Array x, Array table, std::int64_t rows, std::int64_t first_row,
                             std::int64_t sequence, std::int64_t width) = 0;
  virtual void add_positions_backward(Array gradient, Array table_gradient, std::int64_t rows,
                                      std::int64_t first_row, std::int64_t sequence,
                                      std::int64_t width) = 0;

  // The parts of the loss are fp32, targets int64.
  virtual void cross_entropy(const LogitSlice& slice, Array logits, Array targets,
                             std::int64_t rows, Array largest, Array sum, Array target) = 0;
  virtual void cross_entropy_backward(const LogitSlice& slice, Array logits, Array targets,
                                      std::int64_t rows, Array largest, Array sum, float scale) = 0;
  // sum[i] *= exp(local_largest[i] - largest[i]): to the largest logit of all slices.
  virtual void rescale_sums(Array local_largest, Array largest, Array sum, std::int64_t rows) = 0;
  // *total += sum over rows of log(sum) + largest - target.
  virtual void add_loss(Array largest, Array sum, Array target, std::int64_t rows,
                        double* total) = 0;

  // *total += the sum of squares.
  virtual void add_squares(Array data, std::int64_t count, double* total) = 0;
  virtual void narrow(const double* from, float* to) = 0;
  // `step` counts from 1; weight and moments are fp32. `rounded` (may be absent) gets the weights
  // in its own type. Where `squared_norm` is not null, gradients are clipped to what it says.
  virtual void adamw(const AdamW& settings, std::int64_t step, const float* squared_norm,
                     Array gradient, Array weight, Array moment1, Array moment2, Array rounded,
                     std::int64_t count) = 0;
};

}  // namespace stepcast
