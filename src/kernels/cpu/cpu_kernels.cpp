// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cpu_kernels.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "core/assert.h"
#include "kernels/cpu/activation.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/cpu_variants.h"
#include "kernels/cpu/cross_entropy.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/embedding.h"
#include "kernels/cpu/floats.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/rotary.h"

namespace stepcast {
namespace {

using cpu::floats;
using cpu::integers;

Heads<const float> in(HeadArray heads) { return {floats(heads.array), heads.stride}; }
Heads<float> out(HeadArray heads) { return {floats(heads.array), heads.stride}; }

class CpuKernels final : public Kernels {
 public:
  VariantKernels* variants() override { return &variants_; }

  void gemm(std::int64_t m, std::int64_t n, std::int64_t k, MatrixArray a, MatrixArray b,
            MatrixArray c, bool accumulate, Array bias) override {
    const auto input = [](MatrixArray x) {
      return Matrix<const float>{floats(x.array), x.stride, x.transposed};
    };
    cpu::gemm<float>(m, n, k, input(a), input(b), {floats(c.array), c.stride}, accumulate);
    if (bias) cpu::add_bias(floats(c.array), floats(bias), m, n);
  }

  void attention(const AttentionShape& shape, HeadArray query, HeadArray key, HeadArray value,
                 HeadArray context, Array log_sum_exp) override {
    cpu::attention<float>(shape, in(query), in(key), in(value), out(context), floats(log_sum_exp));
  }
  void attention_backward(const AttentionShape& shape, HeadArray query, HeadArray key,
                          HeadArray value, HeadArray context, Array log_sum_exp,
                          HeadArray context_gradient, HeadArray query_gradient,
                          HeadArray key_gradient, HeadArray value_gradient,
                          Array workspace) override {
    cpu::attention_backward<float>(shape, in(query), in(key), in(value), in(context),
                                   floats(log_sum_exp), in(context_gradient), out(query_gradient),
                                   out(key_gradient), out(value_gradient), floats(workspace));
  }

  void attention_scores(const AttentionShape& shape, HeadArray query, HeadArray key,
                        Array scores) override {
    cpu::attention_scores<float>(shape, in(query), in(key), floats(scores));
  }
  void masked_softmax(const AttentionShape& shape, Array scores, Array probabilities) override {
    cpu::masked_softmax<float>(shape, floats(scores), floats(probabilities));
  }
  void attention_context(const AttentionShape& shape, Array probabilities, HeadArray value,
                         Array by_head) override {
    cpu::attention_context<float>(shape, floats(probabilities), in(value), floats(by_head));
  }
  void context_transpose(const AttentionShape& shape, Array by_head, HeadArray context) override {
    cpu::context_transpose<float>(shape, floats(by_head), out(context));
  }
  void context_transpose_backward(const AttentionShape& shape, HeadArray context_gradient,
                                  Array by_head) override {
    cpu::context_transpose_backward<float>(shape, in(context_gradient), floats(by_head));
  }
  void probabilities_gradient(const AttentionShape& shape, Array by_head, HeadArray value,
                              Array gradient) override {
    cpu::probabilities_gradient<float>(shape, floats(by_head), in(value), floats(gradient));
  }
  void value_gradient(const AttentionShape& shape, Array probabilities, Array by_head,
                      Array gradient) override {
    cpu::value_gradient<float>(shape, floats(probabilities), floats(by_head), floats(gradient));
  }
  void masked_softmax_backward(const AttentionShape& shape, Array probabilities,
                               Array probabilities_gradient, Array scores_gradient) override {
    cpu::masked_softmax_backward<float>(shape, floats(probabilities),
                                        floats(probabilities_gradient), floats(scores_gradient));
  }
  void query_gradient(const AttentionShape& shape, Array scores_gradient, HeadArray key,
                      Array gradient) override {
    cpu::query_gradient<float>(shape, floats(scores_gradient), in(key), floats(gradient));
  }
  void key_gradient(const AttentionShape& shape, Array scores_gradient, HeadArray query,
                    Array gradient) override {
    cpu::key_gradient<float>(shape, floats(scores_gradient), in(query), floats(gradient));
  }
  void gather_qkv_gradient(const AttentionShape& shape, Array query_gradient, Array key_gradient,
                           Array value_gradient, HeadArray query, HeadArray key,
                           HeadArray value) override {
    cpu::gather_qkv_gradient<float>(shape, floats(query_gradient), floats(key_gradient),
                                    floats(value_gradient), out(query), out(key), out(value));
  }

  void norm(NormKind kind, Array x, Array weight, Array bias, Array y, std::int64_t rows,
            std::int64_t width, std::int64_t x_stride, std::int64_t y_stride) override {
    cpu::norm<float>(kind, floats(x), floats(weight), floats(bias), floats(y), rows, width,
                     x_stride, y_stride);
  }
  void add_norm(NormKind kind, Array branch, Array branch_bias, Array residual, Array weight,
                Array bias, Array sum, Array y, std::int64_t rows, std::int64_t width) override {
    add_residual(branch, branch_bias, residual, sum, rows, width);
    norm(kind, sum, weight, bias, y, rows, width, width, width);
  }
  void norm_backward(NormKind kind, Array x, Array weight, Array dy, Array residual, Array dx,
                     Array weight_gradient, Array bias_gradient, bool accumulate, std::int64_t rows,
                     std::int64_t width, std::int64_t x_stride, std::int64_t dy_stride) override {
    cpu::norm_backward<float>(kind, floats(x), floats(weight), floats(dy), floats(dx),
                              floats(weight_gradient), floats(bias_gradient), accumulate, rows,
                              width, x_stride, dy_stride);
    if (!residual) return;
    STEPCAST_ASSERT(dy_stride == width, "rows of a residual stream lie behind each other");
    cpu::accumulate<float>(floats(residual), floats(dx), rows * width);
  }
  void activation(ActivationKind kind, Array up, Array bias, Array result, std::int64_t rows,
                  std::int64_t width) override {
    cpu::activation<float>(kind, floats(up), floats(bias), floats(result), rows, width);
  }
  void activation_backward(ActivationKind kind, Array up, Array bias, Array gradient,
                           Array up_gradient, Array of_bias, bool accumulate, std::int64_t rows,
                           std::int64_t width) override {
    cpu::activation_backward<float>(kind, floats(up), floats(bias), floats(gradient),
                                    floats(up_gradient), rows, width);
    if (!of_bias) return;
    const std::int64_t up_width = kind == ActivationKind::kSwiglu ? 2 * width : width;
    bias_gradient(up_gradient, of_bias, rows, up_width, accumulate);
  }
  void rotary(std::int64_t batch, std::int64_t sequence, std::int64_t head_dim,
              const RotaryArrays& query, const RotaryArrays& key, bool backward) override {
    for (const RotaryArrays& side : {query, key}) {
      cpu::rotary<float>(batch, sequence, side.heads, head_dim, in(side.in), out(side.out),
                         backward);
    }
  }
  void bias_gradient(Array data, Array gradient, std::int64_t rows, std::int64_t columns,
                     bool accumulate) override {
    cpu::bias_gradient<float>(floats(data), floats(gradient), rows, columns, accumulate);
  }

  void add_residual(Array branch, Array bias, Array residual, Array result, std::int64_t rows,
                    std::int64_t columns) override {
    cpu::add_residual<float>(floats(branch), floats(bias), floats(residual), floats(result), rows,
                             columns);
  }
  void accumulate(Array more, Array sum, std::int64_t count) override {
    cpu::accumulate<float>(floats(more), floats(sum), count);
  }
  void fill(Array data, float value, std::int64_t count) override {
    std::fill_n(floats(data), count, value);
  }
  void scale(Array data, float factor, std::int64_t count) override {
    cpu::scale(floats(data), factor, count);
  }
  void noise(Array data, std::int64_t count) override {
    std::minstd_rand random(1);
    std::uniform_real_distribution<float> number(-1, 1);
    for (std::int64_t i = 0; i < count; ++i) floats(data)[i] = number(random);
  }
  void copy(Array from, Array to, std::int64_t count) override {
    std::copy_n(floats(from), count, floats(to));
  }

  void embed_tokens(const TableSlice& slice, Array tokens, std::int64_t count, Array table,
                    Array result) override {
    cpu::embed_tokens<float>(slice, integers(tokens), count, floats(table), floats(result));
  }
  void embed_tokens_backward(const TableSlice& slice, Array tokens, std::int64_t count,
                             Array gradient, Array table_gradient) override {
    cpu::embed_tokens_backward<float>(slice, integers(tokens), count, floats(gradient),
                                      floats(table_gradient));
  }
  void add_positions(Array x, Array table, std::int64_t rows, std::int64_t first_row,
                     std::int64_t sequence, std::int64_t width) override {
    cpu::add_positions<float>(floats(x), floats(table), rows, first_row, sequence, width);
  }
  void add_positions_backward(Array gradient, Array table_gradient, std::int64_t rows,
                              std::int64_t first_row, std::int64_t sequence,
                              std::int64_t width) override {
    cpu::add_positions_backward<float>(floats(gradient), floats(table_gradient), rows, first_row,
                                       sequence, width);
  }

  void cross_entropy(const LogitSlice& slice, Array logits, Array targets, std::int64_t rows,
                     Array largest, Array sum, Array target) override {
    cpu::cross_entropy<float>(slice, floats(logits), integers(targets), rows, floats(largest),
                              floats(sum), floats(target));
  }
  void cross_entropy_backward(const LogitSlice& slice, Array logits, Array targets,
                              std::int64_t rows, Array largest, Array sum, float scale) override {
    cpu::cross_entropy_backward<float>(slice, floats(logits), integers(targets), rows,
                                       floats(largest), floats(sum), scale);
  }
  void rescale_sums(Array local_largest, Array largest, Array sum, std::int64_t rows) override {
    const float *local = floats(local_largest), *of_all = floats(largest);
    for (std::int64_t i = 0; i < rows; ++i) floats(sum)[i] *= std::exp(local[i] - of_all[i]);
  }
  void add_loss(Array largest, Array sum, Array target, std::int64_t rows, double* total) override {
    const float *most = floats(largest), *all = floats(sum), *own = floats(target);
    for (std::int64_t i = 0; i < rows; ++i) {
      *total += std::log(static_cast<double>(all[i])) + most[i] - own[i];
    }
  }

  void add_squares(Array data, std::int64_t count, double* total) override {
    *total += cpu::sum_of_squares<float>(floats(data), count);
  }
  void narrow(const double* from, float* to) override { *to = static_cast<float>(*from); }
  void adamw(const AdamW& settings, std::int64_t step, const float* squared_norm, Array gradient,
             Array weight, Array moment1, Array moment2, Array rounded,
             std::int64_t count) override {
    STEPCAST_ASSERT(!rounded, "weights in fp32 are not rounded");
    const double factor =
        squared_norm == nullptr ? 1 : clip_factor(static_cast<double>(*squared_norm));
    cpu::adamw<float>(settings, step, floats(gradient), floats(weight), floats(moment1),
                      floats(moment2), count, static_cast<float>(factor));
  }

 private:
  CpuVariants variants_;
};

}  // namespace

std::unique_ptr<Kernels> make_cpu_kernels() { return std::make_unique<CpuKernels>(); }

}  // namespace stepcast
