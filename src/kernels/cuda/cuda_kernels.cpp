// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda_kernels.h"

#include <type_traits>

#include "core/assert.h"
#include "kernels/cuda/activation.h"
#include "kernels/cuda/attention_unfused.h"
#include "kernels/cuda/bias.h"
#include "kernels/cuda/cross_entropy.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/embedding.h"
#include "kernels/cuda/noise.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/rotary.h"

namespace stepcast::cuda {
namespace {

// Calls body(T()) with the array's type.
template <typename Body>
void with_type(Array array, const Body& body) {
  switch (array.type) {
    case DataType::kFp32:
      return body(float());
    case DataType::kBf16:
      return body(Bf16());
    case DataType::kFp16:
      return body(Fp16());
    default:
      STEPCAST_ASSERT(false, "kernels compute in fp32, bf16 and fp16");
  }
}

// Calls body(T(), G()), G being T or float.
template <typename Body>
void with_types(Array array, Array result, const Body& body) {
  with_type(array, [&](auto one) {
    if (result.type == array.type) return body(one, one);
    STEPCAST_ASSERT(result.type == DataType::kFp32, "sums have the type of their terms, or fp32");
    body(one, float());
  });
}

template <typename T>
Heads<const T> in(HeadArray heads, T) {
  return {heads.array.as<const T>(), heads.stride};
}
template <typename T>
Heads<T> out(HeadArray heads, T) {
  return {heads.array.as<T>(), heads.stride};
}
const std::int64_t* integers(Array array) { return array.as<const std::int64_t>(); }

}  // namespace

float* CudaKernels::workspace(std::int64_t floats) {
  const auto bytes = static_cast<std::size_t>(floats) * sizeof(float);
  if (bytes > workspace_bytes_) {
    workspace_.emplace(bytes);  // what still runs has ended when the old one is freed
    workspace_bytes_ = bytes;
  }
  return static_cast<float*>(workspace_->data());
}

void CudaKernels::gemm(std::int64_t m, std::int64_t n, std::int64_t k, MatrixArray a, MatrixArray b,
                       MatrixArray c, bool accumulate, Array bias) {
  with_types(a.array, c.array, [&](auto x, auto y) {
    using T = decltype(x);
    using C = decltype(y);
    STEPCAST_ASSERT(!bias || bias.type == c.array.type,
                    "a bias has the type of what it is added to");
    products_.gemm<T, C>(m, n, k, {a.array.as<const T>(), a.stride, a.transposed},
                         {b.array.as<const T>(), b.stride, b.transposed},
                         {c.array.as<C>(), c.stride, c.transposed}, accumulate, stream_,
                         bias.as<const C>());
  });
}

void CudaKernels::attention(const AttentionShape& shape, HeadArray query, HeadArray key,
                            HeadArray value, HeadArray context, Array log_sum_exp) {
  STEPCAST_ASSERT(shape.is_plain(), "check_executable() refuses windows and wider values");
  with_type(query.array, [&](auto x) {
    using T = decltype(x);
    const ForwardArrays<T> arrays{in(query, x), in(key, x), in(value, x), out(context, x),
                                  log_sum_exp.as<float>()};
    attention_.forward(shape, arrays, stream_);
  });
}

void CudaKernels::attention_backward(const AttentionShape& shape, HeadArray query, HeadArray key,
                                     HeadArray value, HeadArray context, Array log_sum_exp,
                                     HeadArray context_gradient, HeadArray query_gradient,
                                     HeadArray key_gradient, HeadArray value_gradient,
                                     Array row_products) {
  STEPCAST_ASSERT(shape.is_plain(), "check_executable() refuses windows and wider values");
  with_type(query.array, [&](auto x) {
    using T = decltype(x);
    const BackwardArrays<T> arrays{in(query, x),
                                   in(key, x),
                                   in(value, x),
                                   in(context, x),
                                   log_sum_exp.as<const float>(),
                                   in(context_gradient, x),
                                   out(query_gradient, x),
                                   out(key_gradient, x),
                                   out(value_gradient, x),
                                   row_products.as<float>()};
    attention_.backward(shape, arrays, stream_);
  });
}

void CudaKernels::attention_scores(const AttentionShape& shape, HeadArray query, HeadArray key,
                                   Array scores) {
  with_type(scores, [&](auto x) {
    using T = decltype(x);
    cuda::attention_scores(products_, shape, in(query, x), in(key, x), scores.as<T>(), stream_);
  });
}

void CudaKernels::masked_softmax(const AttentionShape& shape, Array scores, Array probabilities) {
  with_type(scores, [&](auto x) {
    using T = decltype(x);
    cuda::masked_softmax(shape, scores.as<const T>(), probabilities.as<T>(), stream_);
  });
}

void CudaKernels::attention_context(const AttentionShape& shape, Array probabilities,
                                    HeadArray value, Array by_head) {
  with_type(by_head, [&](auto x) {
    using T = decltype(x);
    cuda::attention_context(products_, shape, probabilities.as<const T>(), in(value, x),
                            by_head.as<T>(), stream_);
  });
}

void CudaKernels::context_transpose(const AttentionShape& shape, Array by_head, HeadArray context) {
  with_type(by_head, [&](auto x) {
    using T = decltype(x);
    cuda::context_transpose(shape, by_head.as<const T>(), out(context, x), stream_);
  });
}

void CudaKernels::context_transpose_backward(const AttentionShape& shape,
                                             HeadArray context_gradient, Array by_head) {
  with_type(by_head, [&](auto x) {
    using T = decltype(x);
    cuda::context_transpose_backward(shape, in(context_gradient, x), by_head.as<T>(), stream_);
  });
}

void CudaKernels::probabilities_gradient(const AttentionShape& shape, Array by_head,
                                         HeadArray value, Array gradient) {
  with_type(by_head, [&](auto x) {
    using T = decltype(x);
    cuda::probabilities_gradient(products_, shape, by_head.as<const T>(), in(value, x),
                                 gradient.as<T>(), stream_);
  });
}

void CudaKernels::value_gradient(const AttentionShape& shape, Array probabilities, Array by_head,
                                 Array gradient) {
  with_type(by_head, [&](auto x) {
    using T = decltype(x);
    cuda::value_gradient(products_, shape, probabilities.as<const T>(), by_head.as<const T>(),
                         gradient.as<T>(), stream_);
  });
}

void CudaKernels::masked_softmax_backward(const AttentionShape& shape, Array probabilities,
                                          Array probabilities_gradient, Array scores_gradient) {
  with_type(probabilities, [&](auto x) {
    using T = decltype(x);
    cuda::masked_softmax_backward(shape, probabilities.as<const T>(),
                                  probabilities_gradient.as<const T>(), scores_gradient.as<T>(),
                                  stream_);
  });
}

void CudaKernels::query_gradient(const AttentionShape& shape, Array scores_gradient, HeadArray key,
                                 Array gradient) {
  with_type(gradient, [&](auto x) {
    using T = decltype(x);
    cuda::query_gradient(products_, shape, scores_gradient.as<const T>(), in(key, x),
                         gradient.as<T>(), stream_);
  });
}

void CudaKernels::key_gradient(const AttentionShape& shape, Array scores_gradient, HeadArray query,
                               Array gradient) {
  with_type(gradient, [&](auto x) {
    using T = decltype(x);
    cuda::key_gradient(products_, shape, scores_gradient.as<const T>(), in(query, x),
                       gradient.as<T>(), stream_);
  });
}

void CudaKernels::gather_qkv_gradient(const AttentionShape& shape, Array query_gradient,
                                      Array key_gradient, Array value_gradient, HeadArray query,
                                      HeadArray key, HeadArray value) {
  with_type(query_gradient, [&](auto x) {
    using T = decltype(x);
    cuda::gather_qkv_gradient(shape, query_gradient.as<const T>(), key_gradient.as<const T>(),
                              value_gradient.as<const T>(), out(query, x), out(key, x),
                              out(value, x), stream_);
  });
}

void CudaKernels::norm(NormKind kind, Array x, Array weight, Array bias, Array y, std::int64_t rows,
                       std::int64_t width, std::int64_t x_stride, std::int64_t y_stride) {
  with_type(x, [&](auto one) {
    using T = decltype(one);
    cuda::norm(kind, x.as<const T>(), weight.as<const T>(), bias.as<const T>(), y.as<T>(), rows,
               width, x_stride, y_stride, stream_);
  });
}

void CudaKernels::add_norm(NormKind kind, Array branch, Array branch_bias, Array residual,
                           Array weight, Array bias, Array sum, Array y, std::int64_t rows,
                           std::int64_t width) {
  with_type(branch, [&](auto one) {
    using T = decltype(one);
    cuda::add_norm(kind, branch.as<const T>(), branch_bias.as<const T>(), residual.as<const T>(),
                   weight.as<const T>(), bias.as<const T>(), sum.as<T>(), y.as<T>(), rows, width,
                   stream_);
  });
}

void CudaKernels::norm_backward(NormKind kind, Array x, Array weight, Array dy, Array residual,
                                Array dx, Array weight_gradient, Array bias_gradient,
                                bool accumulate, std::int64_t rows, std::int64_t width,
                                std::int64_t x_stride, std::int64_t dy_stride) {
  with_types(x, weight_gradient, [&](auto one, auto other) {
    using T = decltype(one);
    using G = decltype(other);
    cuda::norm_backward(kind, x.as<const T>(), weight.as<const T>(), dy.as<const T>(),
                        residual.as<const T>(), dx.as<T>(), weight_gradient.as<G>(),
                        bias_gradient.as<G>(), accumulate, rows, width, x_stride, dy_stride,
                        workspace(2 * column_sum_workspace(width)), stream_);
  });
}

void CudaKernels::activation(ActivationKind kind, Array up, Array bias, Array result,
                             std::int64_t rows, std::int64_t width) {
  with_type(up, [&](auto x) {
    using T = decltype(x);
    cuda::activation(kind, up.as<const T>(), bias.as<const T>(), result.as<T>(), rows, width,
                     stream_);
  });
}

void CudaKernels::activation_backward(ActivationKind kind, Array up, Array bias, Array gradient,
                                      Array up_gradient, Array bias_gradient, bool accumulate,
                                      std::int64_t rows, std::int64_t width) {
  const std::int64_t up_width = kind == ActivationKind::kSwiglu ? 2 * width : width;
  const auto call = [&](auto x, const auto* of_bias) {
    using T = decltype(x);
    cuda::activation_backward(kind, up.as<const T>(), bias.as<const T>(), gradient.as<const T>(),
                              up_gradient.as<T>(), of_bias, rows, width, stream_);
  };
  if (!bias_gradient) {
    return with_type(up, [&](auto x) {
      const ActivationBias<decltype(x)>* none = nullptr;
      call(x, none);
    });
  }
  with_types(up, bias_gradient, [&](auto x, auto y) {
    using G = decltype(y);
    const ActivationBias<G> of_bias{bias_gradient.as<G>(), accumulate,
                                    workspace(column_sum_workspace(up_width))};
    call(x, &of_bias);
  });
}

const float* CudaKernels::rotary_table(std::int64_t sequence, std::int64_t head_dim) {
  const std::pair size{sequence, head_dim};
  auto found = rotary_tables_.find(size);
  if (found == rotary_tables_.end()) {
    const auto bytes = static_cast<std::size_t>(sequence * head_dim) * sizeof(float);
    found = rotary_tables_.try_emplace(size, bytes).first;
    cuda::rotary_table(sequence, head_dim, static_cast<float*>(found->second.data()), stream_);
  }
  return static_cast<const float*>(found->second.data());
}

void CudaKernels::rotary(std::int64_t batch, std::int64_t sequence, std::int64_t head_dim,
                         const RotaryArrays& query, const RotaryArrays& key, bool backward) {
  const float* table = rotary_table(sequence, head_dim);
  with_type(query.in.array, [&](auto x) {
    const auto side = [&](const RotaryArrays& of) {
      return RotarySide<decltype(x)>{of.heads, in(of.in, x), out(of.out, x)};
    };
    cuda::rotary(batch, sequence, head_dim, side(query), side(key), table, backward, stream_);
  });
}

void CudaKernels::bias_gradient(Array data, Array gradient, std::int64_t rows, std::int64_t columns,
                                bool accumulate) {
  with_types(data, gradient, [&](auto one, auto other) {
    using T = decltype(one);
    using G = decltype(other);
    cuda::bias_gradient(data.as<const T>(), gradient.as<G>(), rows, columns, accumulate,
                        workspace(column_sum_workspace(columns)), stream_);
  });
}

void CudaKernels::add_residual(Array branch, Array bias, Array residual, Array result,
                               std::int64_t rows, std::int64_t columns) {
  with_type(branch, [&](auto x) {
    using T = decltype(x);
    cuda::add_residual(branch.as<const T>(), bias.as<const T>(), residual.as<const T>(),
                       result.as<T>(), rows, columns, stream_);
  });
}

void CudaKernels::accumulate(Array more, Array sum, std::int64_t count) {
  with_types(more, sum, [&](auto one, auto other) {
    using T = decltype(one);
    using S = decltype(other);
    cuda::accumulate(more.as<const T>(), sum.as<S>(), count, stream_);
  });
}

void CudaKernels::fill(Array data, float value, std::int64_t count) {
  with_type(data, [&](auto x) { cuda::fill(data.as<decltype(x)>(), value, count, stream_); });
}

void CudaKernels::scale(Array data, float factor, std::int64_t count) {
  with_type(data, [&](auto x) { cuda::scale(data.as<decltype(x)>(), factor, count, stream_); });
}

void CudaKernels::noise(Array data, std::int64_t count) {
  constexpr std::uint32_t kSeed = 1;
  with_type(data, [&](auto x) { fill_with_noise(data.as<decltype(x)>(), count, kSeed, stream_); });
}

void CudaKernels::copy(Array from, Array to, std::int64_t count) {
  with_type(from, [&](auto one) {
    with_type(to, [&](auto other) {
      cast(from.as<const decltype(one)>(), to.as<decltype(other)>(), count, stream_);
    });
  });
}

void CudaKernels::embed_tokens(const TableSlice& slice, Array tokens, std::int64_t count,
                               Array table, Array result) {
  with_type(table, [&](auto x) {
    using T = decltype(x);
    cuda::embed_tokens(slice, integers(tokens), count, table.as<const T>(), result.as<T>(),
                       stream_);
  });
}

void CudaKernels::embed_tokens_backward(const TableSlice& slice, Array tokens, std::int64_t count,
                                        Array gradient, Array table_gradient) {
  with_types(gradient, table_gradient, [&](auto one, auto other) {
    using T = decltype(one);
    using G = decltype(other);
    cuda::embed_tokens_backward(slice, integers(tokens), count, gradient.as<const T>(),
                                table_gradient.as<G>(), stream_);
  });
}

void CudaKernels::add_positions(Array x, Array table, std::int64_t rows, std::int64_t first_row,
                                std::int64_t sequence, std::int64_t width) {
  with_type(x, [&](auto one) {
    using T = decltype(one);
    cuda::add_positions(x.as<T>(), table.as<const T>(), rows, first_row, sequence, width, stream_);
  });
}

void CudaKernels::add_positions_backward(Array gradient, Array table_gradient, std::int64_t rows,
                                         std::int64_t first_row, std::int64_t sequence,
                                         std::int64_t width) {
  with_types(gradient, table_gradient, [&](auto one, auto other) {
    using T = decltype(one);
    using G = decltype(other);
    cuda::add_positions_backward(gradient.as<const T>(), table_gradient.as<G>(), rows, first_row,
                                 sequence, width, stream_);
  });
}

void CudaKernels::cross_entropy(const LogitSlice& slice, Array logits, Array targets,
                                std::int64_t rows, Array largest, Array sum, Array target) {
  with_type(logits, [&](auto x) {
    using T = decltype(x);
    cuda::cross_entropy(slice, logits.as<const T>(), integers(targets), rows, largest.as<float>(),
                        sum.as<float>(), target.as<float>(), stream_);
  });
}

void CudaKernels::cross_entropy_backward(const LogitSlice& slice, Array logits, Array targets,
                                         std::int64_t rows, Array largest, Array sum, float scale) {
  with_type(logits, [&](auto x) {
    using T = decltype(x);
    cuda::cross_entropy_backward(slice, logits.as<T>(), integers(targets), rows,
                                 largest.as<const float>(), sum.as<const float>(), scale, stream_);
  });
}

void CudaKernels::rescale_sums(Array local_largest, Array largest, Array sum, std::int64_t rows) {
  cuda::rescale_sums(local_largest.as<float>(), largest.as<float>(), sum.as<float>(), rows,
                     stream_);
}

void CudaKernels::add_loss(Array largest, Array sum, Array target, std::int64_t rows,
                           double* total) {
  cuda::add_loss(largest.as<float>(), sum.as<float>(), target.as<float>(), rows, total, stream_);
}

void CudaKernels::add_squares(Array data, std::int64_t count, double* total) {
  auto* of_blocks = reinterpret_cast<double*>(workspace(2 * kSumBlocks));
  with_type(data, [&](auto x) {
    sum_of_squares(data.as<const decltype(x)>(), count, of_blocks, total, true, stream_);
  });
}

void CudaKernels::narrow(const double* from, float* to) { cuda::narrow(from, to, stream_); }

void CudaKernels::adamw(const AdamW& settings, std::int64_t step, const float* squared_norm,
                        Array gradient, Array weight, Array moment1, Array moment2, Array rounded,
                        std::int64_t count) {
  // Gradients have the type of the rounded weights, or fp32.
  with_types(rounded ? rounded : gradient, gradient, [&](auto x, auto y) {
    using R = decltype(x);
    using G = decltype(y);
    cuda::adamw(settings, step, squared_norm, gradient.as<const G>(), weight.as<float>(),
                moment1.as<float>(), moment2.as<float>(), rounded.as<R>(), count, stream_);
  });
}

}  // namespace stepcast::cuda
