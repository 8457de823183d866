// SPDX-License-Identifier: Apache-2.0
// Kernels on a GPU's streams: fp32, bf16 and fp16, and products of fp8. They are queued when they
// return, on the stream that was chosen last; those that need workspace belong on one stream.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "kernels/cuda/attention_choice.h"
#include "kernels/cuda/cuda_variants.h"
#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/gemm.h"
#include "kernels/kernels.h"

namespace stepcast::cuda {

class CudaKernels final : public Kernels {
 public:
  CudaKernels(const GemmSettings& products, const AttentionSettings& attention)
      : products_(products), attention_(attention), variants_(*this) {}

  void use(Stream stream) { stream_ = stream; }
  MatrixProducts& products() { return products_; }
  const AttentionKernels& attention_kernels() const { return attention_; }
  std::int64_t workspace_bytes() const {
    return static_cast<std::int64_t>(workspace_bytes_) + attention_.workspace_bytes();
  }

  VariantKernels& variants() override { return variants_; }

  void gemm(const GemmArguments& call) override;
  void grouped_gemm(const GroupedGemmArguments& call) override;

  void find_largest(const LargestArguments& call) override;
  void cast_to_fp8(const Fp8CastArguments& call) override;
  void transpose_fp8(const Fp8TransposeArguments& call) override;

  void attention(const AttentionArguments& call) override;
  void attention_backward(const AttentionGradientArguments& call) override;

  void attention_scores(const AttentionScoresArguments& call) override;
  void masked_softmax(const AttentionShape& shape, Array scores, Array probabilities) override;
  void attention_context(const HeadProductArguments& call) override;
  void context_transpose(const AttentionShape& shape, Array by_head, HeadArray context) override;
  void context_transpose_backward(const AttentionShape& shape, HeadArray context_gradient,
                                  Array by_head) override;
  void probabilities_gradient(const HeadProductArguments& call) override;
  void value_gradient(const ValueGradientArguments& call) override;
  void masked_softmax_backward(const SoftmaxGradientArguments& call) override;
  void query_gradient(const HeadProductArguments& call) override;
  void key_gradient(const HeadProductArguments& call) override;
  void gather_qkv_gradient(const QkvGatherArguments& call) override;

  void norm(const NormArguments& call) override;
  void add_norm(const AddNormArguments& call) override;
  void norm_backward(const NormGradientArguments& call) override;
  void activation(const ActivationArguments& call) override;
  void activation_backward(const ActivationGradientArguments& call) override;
  void rotary(const RotaryArguments& call) override;
  void bias_gradient(const BiasGradientArguments& call) override;

  void add_residual(const ResidualArguments& call) override;
  void accumulate(Array more, Array sum, std::int64_t count) override;
  void fill(Array data, float value, std::int64_t count) override;
  void scale(Array data, float factor, std::int64_t count) override;
  void noise(Array data, std::int64_t count) override;
  void copy(Array from, Array to, std::int64_t count) override;

  void embed_tokens(const EmbeddingArguments& call) override;
  void embed_tokens_backward(const EmbeddingGradientArguments& call) override;
  void add_positions(const PositionArguments& call) override;
  void add_positions_backward(const PositionArguments& call) override;

  void cross_entropy(const LossArguments& call) override;
  void cross_entropy_backward(const LossGradientArguments& call) override;
  void rescale_sums(const RescaleArguments& call) override;
  void add_loss(const LossSumArguments& call) override;

  void add_squares(Array data, std::int64_t count, double* total) override;
  void narrow(const double* from, float* to) override;
  void adamw(const AdamWArguments& call) override;

 private:
  friend class CudaVariants;
  float* workspace(std::int64_t floats);
  const float* rotary_table(std::int64_t sequence, std::int64_t head_dim,
                            const SequencePlaces& places);
  void gemm_of_fp8(const GemmArguments& call);
  Array rounded_to(DataType type, const MatrixArray& matrix, std::int64_t rows);

  MatrixProducts products_;
  AttentionKernels attention_;
  CudaVariants variants_;
  Stream stream_ = nullptr;
  std::optional<DeviceMemory> workspace_;
  std::size_t workspace_bytes_ = 0;
  std::map<std::array<std::int64_t, 5>, DeviceMemory> rotary_tables_;
};

}  // namespace stepcast::cuda
