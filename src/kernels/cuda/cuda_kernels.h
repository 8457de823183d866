// SPDX-License-Identifier: Apache-2.0
// Kernels on a GPU's streams: fp32, bf16 and fp16. They are queued when they return, on the stream
// that was chosen last; those that need workspace belong on one stream.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "kernels/cuda/attention_choice.h"
#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/gemm.h"
#include "kernels/kernels.h"

namespace stepcast::cuda {

class CudaKernels final : public Kernels {
 public:
  CudaKernels(const GemmSettings& products, const AttentionSettings& attention)
      : products_(products), attention_(attention) {}

  void use(Stream stream) { stream_ = stream; }
  MatrixProducts& products() { return products_; }
  const AttentionKernels& attention_kernels() const { return attention_; }
  std::int64_t workspace_bytes() const {
    return static_cast<std::int64_t>(workspace_bytes_) + attention_.workspace_bytes();
  }

  void gemm(std::int64_t m, std::int64_t n, std::int64_t k, MatrixArray a, MatrixArray b,
            MatrixArray c, bool accumulate, Array bias) override;

  void attention(const AttentionShape& shape, HeadArray query, HeadArray key, HeadArray value,
                 HeadArray context, Array log_sum_exp) override;
  void attention_backward(const AttentionShape& shape, HeadArray query, HeadArray key,
                          HeadArray value, HeadArray context, Array log_sum_exp,
                          HeadArray context_gradient, HeadArray query_gradient,
                          HeadArray key_gradient, HeadArray value_gradient,
                          Array workspace) override;

  void attention_scores(const AttentionShape& shape, HeadArray query, HeadArray key,
                        Array scores) override;
  void masked_softmax(const AttentionShape& shape, Array scores, Array probabilities) override;
  void attention_context(const AttentionShape& shape, Array probabilities, HeadArray value,
                         Array by_head) override;
  void context_transpose(const AttentionShape& shape, Array by_head, HeadArray context) override;
  void context_transpose_backward(const AttentionShape& shape, HeadArray context_gradient,
                                  Array by_head) override;
  void probabilities_gradient(const AttentionShape& shape, Array by_head, HeadArray value,
                              Array gradient) override;
  void value_gradient(const AttentionShape& shape, Array probabilities, Array by_head,
                      Array gradient) override;
  void masked_softmax_backward(const AttentionShape& shape, Array probabilities,
                               Array probabilities_gradient, Array scores_gradient) override;
  void query_gradient(const AttentionShape& shape, Array scores_gradient, HeadArray key,
                      Array gradient) override;
  void key_gradient(const AttentionShape& shape, Array scores_gradient, HeadArray query,
                    Array gradient) override;
  void gather_qkv_gradient(const AttentionShape& shape, Array query_gradient, Array key_gradient,
                           Array value_gradient, HeadArray query, HeadArray key,
                           HeadArray value) override;

  void norm(NormKind kind, Array x, Array weight, Array bias, Array y, std::int64_t rows,
            std::int64_t width, std::int64_t x_stride, std::int64_t y_stride) override;
  void add_norm(NormKind kind, Array branch, Array branch_bias, Array residual, Array weight,
                Array bias, Array sum, Array y, std::int64_t rows, std::int64_t width) override;
  void norm_backward(NormKind kind, Array x, Array weight, Array dy, Array residual, Array dx,
                     Array weight_gradient, Array bias_gradient, bool accumulate, std::int64_t rows,
                     std::int64_t width, std::int64_t x_stride, std::int64_t dy_stride) override;
  void activation(ActivationKind kind, Array up, Array bias, Array out, std::int64_t rows,
                  std::int64_t width) override;
  void activation_backward(ActivationKind kind, Array up, Array bias, Array gradient,
                           Array up_gradient, Array bias_gradient, bool accumulate,
                           std::int64_t rows, std::int64_t width) override;
  void rotary(std::int64_t batch, std::int64_t sequence, std::int64_t head_dim,
              const RotaryArrays& query, const RotaryArrays& key, bool backward) override;
  void bias_gradient(Array data, Array gradient, std::int64_t rows, std::int64_t columns,
                     bool accumulate) override;

  void add_residual(Array branch, Array bias, Array residual, Array out, std::int64_t rows,
                    std::int64_t columns) override;
  void accumulate(Array more, Array sum, std::int64_t count) override;
  void fill(Array data, float value, std::int64_t count) override;
  void scale(Array data, float factor, std::int64_t count) override;
  void noise(Array data, std::int64_t count) override;
  void copy(Array from, Array to, std::int64_t count) override;

  void embed_tokens(const TableSlice& slice, Array tokens, std::int64_t count, Array table,
                    Array out) override;
  void embed_tokens_backward(const TableSlice& slice, Array tokens, std::int64_t count,
                             Array gradient, Array table_gradient) override;
  void add_positions(Array x, Array table, std::int64_t rows, std::int64_t first_row,
                     std::int64_t sequence, std::int64_t width) override;
  void add_positions_backward(Array gradient, Array table_gradient, std::int64_t rows,
                              std::int64_t first_row, std::int64_t sequence,
                              std::int64_t width) override;

  void cross_entropy(const LogitSlice& slice, Array logits, Array targets, std::int64_t rows,
                     Array largest, Array sum, Array target) override;
  void cross_entropy_backward(const LogitSlice& slice, Array logits, Array targets,
                              std::int64_t rows, Array largest, Array sum, float scale) override;
  void rescale_sums(Array local_largest, Array largest, Array sum, std::int64_t rows) override;
  void add_loss(Array largest, Array sum, Array target, std::int64_t rows, double* total) override;

  void add_squares(Array data, std::int64_t count, double* total) override;
  void narrow(const double* from, float* to) override;
  void adamw(const AdamW& settings, std::int64_t step, const float* squared_norm, Array gradient,
             Array weight, Array moment1, Array moment2, Array rounded,
             std::int64_t count) override;

 private:
  float* workspace(std::int64_t floats);
  const float* rotary_table(std::int64_t sequence, std::int64_t head_dim);

  MatrixProducts products_;
  AttentionKernels attention_;
  Stream stream_ = nullptr;
  std::optional<DeviceMemory> workspace_;
  std::size_t workspace_bytes_ = 0;
  std::map<std::pair<std::int64_t, std::int64_t>, DeviceMemory> rotary_tables_;
};

}  // namespace stepcast::cuda
