// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cpu_kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "core/assert.h"
#include "kernels/cpu/activation.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/cpu_variants.h"
#include "kernels/cpu/cross_entropy.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/embedding.h"
#include "kernels/cpu/floats.h"
#include "kernels/cpu/fp8.h"
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
  VariantKernels& variants() override { return variants_; }

  void gemm(const GemmArguments& call) override {
    const auto input = [](const MatrixArray& x, std::int64_t rows, std::int64_t columns,
                          std::vector<float>& expanded) {
      if (x.array.type != DataType::kFp8) {
        return Matrix<const float>{floats(x.array), x.stride, x.transposed};
      }
      const std::int64_t count = (x.transposed ? columns : rows) * x.stride;
      expanded.resize(static_cast<std::size_t>(count));
      cpu::expand_fp8(x.array.as<const std::uint8_t>(), count, x.fp8, expanded.data());
      return Matrix<const float>{expanded.data(), x.stride, x.transposed};
    };
    cpu::gemm<float>(call.m, call.n, call.k, input(call.a, call.m, call.k, expanded_[0]),
                     input(call.b, call.k, call.n, expanded_[1]),
                     {floats(call.c.array), call.c.stride}, call.accumulate);
    if (call.bias) cpu::add_bias(floats(call.c.array), floats(call.bias), call.m, call.n);
  }

  void find_largest(const LargestArguments& call) override {
    const float most = cpu::largest_of(floats(call.x), call.count);
    *call.largest = call.joins ? std::max(*call.largest, most) : most;
  }
  void cast_to_fp8(const Fp8CastArguments& call) override {
    const int exponent = cpu::scale_exponent(*call.largest, call.format);
    *call.factor = std::ldexp(1.0F, -exponent);
    cpu::cast_to_fp8(floats(call.x), call.rows, call.columns, call.format, exponent,
                     call.by_rows.as<std::uint8_t>(), call.by_columns.as<std::uint8_t>());
  }
  void transpose_fp8(const Fp8TransposeArguments& call) override {
    const auto* from = call.from.as<const std::uint8_t>();
    auto* to = call.to.as<std::uint8_t>();
    for (std::int64_t row = 0; row < call.rows; ++row) {
      for (std::int64_t column = 0; column < call.columns; ++column) {
        to[column * call.rows + row] = from[row * call.columns + column];
      }
    }
  }

  void attention(const AttentionArguments& call) override {
    cpu::attention<float>(call.shape, in(call.query), in(call.key), in(call.value),
                          out(call.context), floats(call.log_sum_exp));
  }
  void attention_backward(const AttentionGradientArguments& call) override {
    cpu::attention_backward<float>(
        call.shape, in(call.query), in(call.key), in(call.value), in(call.context),
        floats(call.log_sum_exp), in(call.context_gradient), out(call.query_gradient),
        out(call.key_gradient), out(call.value_gradient), floats(call.workspace));
  }

  void attention_scores(const AttentionScoresArguments& call) override {
    cpu::attention_scores<float>(call.shape, in(call.query), in(call.key), floats(call.scores));
  }
  void masked_softmax(const AttentionShape& shape, Array scores, Array probabilities) override {
    cpu::masked_softmax<float>(shape, floats(scores), floats(probabilities));
  }
  void attention_context(const HeadProductArguments& call) override {
    cpu::attention_context<float>(call.shape, floats(call.matrix), in(call.heads),
                                  floats(call.out));
  }
  void context_transpose(const AttentionShape& shape, Array by_head, HeadArray context) override {
    cpu::context_transpose<float>(shape, floats(by_head), out(context));
  }
  void context_transpose_backward(const AttentionShape& shape, HeadArray context_gradient,
                                  Array by_head) override {
    cpu::context_transpose_backward<float>(shape, in(context_gradient), floats(by_head));
  }
  void probabilities_gradient(const HeadProductArguments& call) override {
    cpu::probabilities_gradient<float>(call.shape, floats(call.matrix), in(call.heads),
                                       floats(call.out));
  }
  void value_gradient(const ValueGradientArguments& call) override {
    cpu::value_gradient<float>(call.shape, floats(call.probabilities), floats(call.by_head),
                               floats(call.gradient));
  }
  void masked_softmax_backward(const SoftmaxGradientArguments& call) override {
    cpu::masked_softmax_backward<float>(call.shape, floats(call.probabilities),
                                        floats(call.probabilities_gradient),
                                        floats(call.scores_gradient));
  }
  void query_gradient(const HeadProductArguments& call) override {
    cpu::query_gradient<float>(call.shape, floats(call.matrix), in(call.heads), floats(call.out));
  }
  void key_gradient(const HeadProductArguments& call) override {
    cpu::key_gradient<float>(call.shape, floats(call.matrix), in(call.heads), floats(call.out));
  }
  void gather_qkv_gradient(const QkvGatherArguments& call) override {
    cpu::gather_qkv_gradient<float>(call.shape, floats(call.query_gradient),
                                    floats(call.key_gradient), floats(call.value_gradient),
                                    out(call.query), out(call.key), out(call.value));
  }

  void norm(const NormArguments& call) override {
    cpu::norm<float>(call.kind, floats(call.x), floats(call.weight), floats(call.bias),
                     floats(call.y), call.rows, call.width, call.x_stride, call.y_stride);
  }
  void add_norm(const AddNormArguments& call) override {
    add_residual({.branch = call.branch,
                  .bias = call.branch_bias,
                  .residual = call.residual,
                  .out = call.sum,
                  .rows = call.rows,
                  .columns = call.width});
    norm({.kind = call.kind,
          .x = call.sum,
          .weight = call.weight,
          .bias = call.bias,
          .y = call.y,
          .rows = call.rows,
          .width = call.width,
          .x_stride = call.width,
          .y_stride = call.width});
  }
  void norm_backward(const NormGradientArguments& call) override {
    cpu::norm_backward<float>(call.kind, floats(call.x), floats(call.weight), floats(call.dy),
                              floats(call.dx), floats(call.weight_gradient),
                              floats(call.bias_gradient), call.accumulate, call.rows, call.width,
                              call.x_stride, call.dy_stride);
    if (!call.residual) return;
    STEPCAST_ASSERT(call.dy_stride == call.width,
                    "rows of a residual stream lie behind each other");
    cpu::accumulate<float>(floats(call.residual), floats(call.dx), call.rows * call.width);
  }
  void activation(const ActivationArguments& call) override {
    cpu::activation<float>(call.kind, floats(call.up), floats(call.bias), floats(call.out),
                           call.rows, call.width, floats(call.linear));
  }
  void activation_backward(const ActivationGradientArguments& call) override {
    cpu::activation_backward<float>(call.kind, floats(call.up), floats(call.bias),
                                    floats(call.gradient), floats(call.up_gradient), call.rows,
                                    call.width, floats(call.linear));
    if (!call.bias_gradient) return;
    const std::int64_t up_width =
        call.kind == ActivationKind::kSwiglu ? 2 * call.width : call.width;
    bias_gradient({.data = call.up_gradient,
                   .gradient = call.bias_gradient,
                   .rows = call.rows,
                   .columns = up_width,
                   .accumulate = call.accumulate});
  }
  void rotary(const RotaryArguments& call) override {
    for (const RotaryArrays& side : {call.query, call.key}) {
      cpu::rotary<float>(call.batch, call.sequence, side.heads, call.head_dim, in(side.in),
                         out(side.out), call.backward, call.places);
    }
  }
  void bias_gradient(const BiasGradientArguments& call) override {
    cpu::bias_gradient<float>(floats(call.data), floats(call.gradient), call.rows, call.columns,
                              call.accumulate);
  }

  void add_residual(const ResidualArguments& call) override {
    cpu::add_residual<float>(floats(call.branch), floats(call.bias), floats(call.residual),
                             floats(call.out), call.rows, call.columns);
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
    if (data.type == DataType::kFp8) {
      auto* bits = data.as<std::uint8_t>();
      for (std::int64_t i = 0; i < count; ++i) {
        bits[i] = cpu::to_fp8(number(random), Fp8Format::kE4m3);
      }
      return;
    }
    for (std::int64_t i = 0; i < count; ++i) floats(data)[i] = number(random);
  }
  void copy(Array from, Array to, std::int64_t count) override {
    if (from.type == DataType::kFp8) {
      std::copy_n(from.as<const std::uint8_t>(), count, to.as<std::uint8_t>());
      return;
    }
    std::copy_n(floats(from), count, floats(to));
  }

  void embed_tokens(const EmbeddingArguments& call) override {
    cpu::embed_tokens<float>(call.slice, integers(call.tokens), call.count, floats(call.table),
                             floats(call.out));
  }
  void embed_tokens_backward(const EmbeddingGradientArguments& call) override {
    cpu::embed_tokens_backward<float>(call.slice, integers(call.tokens), call.count,
                                      floats(call.gradient), floats(call.table_gradient));
  }
  void add_positions(const PositionArguments& call) override {
    cpu::add_positions<float>(floats(call.x), floats(call.table), call.rows, call.first_row,
                              call.sequence, call.width);
  }
  void add_positions_backward(const PositionArguments& call) override {
    cpu::add_positions_backward<float>(floats(call.x), floats(call.table), call.rows,
                                       call.first_row, call.sequence, call.width);
  }

  void cross_entropy(const LossArguments& call) override {
    cpu::cross_entropy<float>(call.slice, floats(call.logits), integers(call.targets), call.rows,
                              floats(call.largest), floats(call.sum), floats(call.target));
  }
  void cross_entropy_backward(const LossGradientArguments& call) override {
    cpu::cross_entropy_backward<float>(call.slice, floats(call.logits), integers(call.targets),
                                       call.rows, floats(call.largest), floats(call.sum),
                                       call.scale);
  }
  void rescale_sums(const RescaleArguments& call) override {
    const float *local = floats(call.local_largest), *of_all = floats(call.largest);
    for (std::int64_t i = 0; i < call.rows; ++i)
      floats(call.sum)[i] *= std::exp(local[i] - of_all[i]);
  }
  void add_loss(const LossSumArguments& call) override {
    const float *most = floats(call.largest), *all = floats(call.sum), *own = floats(call.target);
    for (std::int64_t i = 0; i < call.rows; ++i) {
      *call.total += std::log(static_cast<double>(all[i])) + most[i] - own[i];
    }
  }

  void add_squares(Array data, std::int64_t count, double* total) override {
    *total += cpu::sum_of_squares<float>(floats(data), count);
  }
  void narrow(const double* from, float* to) override { *to = static_cast<float>(*from); }
  void adamw(const AdamWArguments& call) override {
    STEPCAST_ASSERT(!call.rounded, "weights in fp32 are not rounded");
    const double factor =
        call.squared_norm == nullptr ? 1 : clip_factor(static_cast<double>(*call.squared_norm));
    cpu::adamw<float>(call.settings, call.step, floats(call.gradient), floats(call.weight),
                      floats(call.moment1), floats(call.moment2), call.count,
                      static_cast<float>(factor));
  }

 private:
  CpuVariants variants_;
  std::array<std::vector<float>, 2> expanded_;  // operands in fp8 of the product that runs
};

}  // namespace

std::unique_ptr<Kernels> make_cpu_kernels() { return std::make_unique<CpuKernels>(); }

}  // namespace stepcast
