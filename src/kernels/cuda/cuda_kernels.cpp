// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda_kernels.h"

#include <cuda_runtime_api.h>

#include "core/assert.h"
#include "kernels/cuda/activation.h"
#include "kernels/cuda/array_types.h"
#include "kernels/cuda/attention_unfused.h"
#include "kernels/cuda/bias.h"
#include "kernels/cuda/cross_entropy.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/embedding.h"
#include "kernels/cuda/fp8.h"
#include "kernels/cuda/noise.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/rotary.h"

namespace stepcast::cuda {

float* CudaKernels::workspace(std::int64_t floats) {
  const auto bytes = static_cast<std::size_t>(floats) * sizeof(float);
  if (bytes > workspace_bytes_) {
    workspace_.emplace(bytes);  // what still runs has ended when the old one is freed
    workspace_bytes_ = bytes;
  }
  return static_cast<float*>(workspace_->data());
}

// Gradients of scores are fp32 where weights have 16 bits: a product rounds them first.
Array CudaKernels::rounded_to(DataType type, const MatrixArray& matrix, std::int64_t rows) {
  const std::int64_t count = rows * matrix.stride;
  const Array out{workspace((count + 1) / 2), type};
  copy(matrix.array, out, count);
  return out;
}

// Some of the additions of a forward product may be in fewer bits, as frameworks have it.
void CudaKernels::gemm_of_fp8(const GemmArguments& call) {
  const GemmHints hints{.fast_sums = call.a.fp8.format == Fp8Format::kE4m3};
  const auto run = [&](auto result) {
    using C = decltype(result);
    products_.gemm<Fp8, C>(call.m, call.n, call.k,
                           {call.a.array.as<const Fp8>(), call.a.stride, call.a.transposed},
                           {call.b.array.as<const Fp8>(), call.b.stride, call.b.transposed},
                           {call.c.array.as<C>(), call.c.stride}, call.accumulate, stream_,
                           call.bias.as<const C>(), {}, hints, {call.a.fp8, call.b.fp8});
  };
  if (call.c.array.type == DataType::kFp32) return run(float());
  STEPCAST_ASSERT(call.c.array.type == DataType::kBf16, "products of fp8 give bf16 or fp32");
  run(Bf16());
}

void CudaKernels::gemm(const GemmArguments& given) {
  if (given.a.array.type == DataType::kFp8) return gemm_of_fp8(given);
  GemmArguments call = given;
  if (call.a.array.type != call.b.array.type) {
    call.a.array = rounded_to(call.b.array.type, call.a, call.a.transposed ? call.k : call.m);
  }
  with_types(call.a.array, call.c.array, [&](auto x, auto y) {
    using T = decltype(x);
    using C = decltype(y);
    STEPCAST_ASSERT(!call.bias || call.bias.type == call.c.array.type,
                    "a bias has the type of what it is added to");
    products_.gemm<T, C>(call.m, call.n, call.k,
                         {call.a.array.as<const T>(), call.a.stride, call.a.transposed},
                         {call.b.array.as<const T>(), call.b.stride, call.b.transposed},
                         {call.c.array.as<C>(), call.c.stride, call.c.transposed}, call.accumulate,
                         stream_, call.bias.as<const C>());
  });
}

// Groups of equal size are one product in batches.
void CudaKernels::grouped_gemm(const GroupedGemmArguments& call) {
  const std::int64_t groups = call.groups(), rows = groups > 0 ? call.rows(0) : 0;
  bool is_even = rows > 0;
  for (std::int64_t group = 1; group < groups; ++group) is_even &= call.rows(group) == rows;
  const GemmArguments& all = call.all;
  GemmBatch batch;
  const GemmHints hints{.is_rare = !is_even};
  if (is_even) {
    const std::int64_t of_b = call.sums_rows ? rows * all.b.stride : call.matrix();
    const std::int64_t of_c = call.sums_rows ? call.matrix() : rows * all.c.stride;
    batch = {groups, rows * all.a.stride, of_b, of_c};
  }
  for (std::int64_t group = 0; group < (is_even ? 1 : groups); ++group) {
    const GemmArguments one = call.of(group);
    with_types(one.a.array, one.c.array, [&](auto x, auto y) {
      using T = decltype(x);
      using C = decltype(y);
      products_.gemm<T, C>(
          one.m, one.n, one.k, {one.a.array.as<const T>(), one.a.stride, one.a.transposed},
          {one.b.array.as<const T>(), one.b.stride, one.b.transposed},
          {one.c.array.as<C>(), one.c.stride}, one.accumulate, stream_, nullptr, batch, hints);
    });
  }
}

void CudaKernels::find_largest(const LargestArguments& call) {
  float* const of_blocks = workspace(kLargestBlocks);
  with_type(call.x, [&](auto x) {
    cuda::find_largest(call.x.as<const decltype(x)>(), call.count, of_blocks, call.largest,
                       call.joins, stream_);
  });
}

void CudaKernels::cast_to_fp8(const Fp8CastArguments& call) {
  with_type(call.x, [&](auto x) {
    cuda::cast_to_fp8(call.format, call.x.as<const decltype(x)>(), call.largest, call.factor,
                      call.rows, call.columns, call.by_rows.as<Fp8>(), call.by_columns.as<Fp8>(),
                      stream_);
  });
}

void CudaKernels::transpose_fp8(const Fp8TransposeArguments& call) {
  cuda::transpose_fp8(call.from.as<const Fp8>(), call.to.as<Fp8>(), call.rows, call.columns,
                      stream_);
}

void CudaKernels::attention(const AttentionArguments& call) {
  STEPCAST_ASSERT(call.shape.is_plain(), "check_executable() refuses windows and wider values");
  with_type(call.query.array, [&](auto x) {
    using T = decltype(x);
    const ForwardArrays<T> arrays{in(call.query, x), in(call.key, x), in(call.value, x),
                                  out(call.context, x), call.log_sum_exp.as<float>()};
    attention_.forward(call.shape, arrays, stream_);
  });
}

void CudaKernels::attention_backward(const AttentionGradientArguments& call) {
  STEPCAST_ASSERT(call.shape.is_plain(), "check_executable() refuses windows and wider values");
  with_type(call.query.array, [&](auto x) {
    using T = decltype(x);
    const BackwardArrays<T> arrays{in(call.query, x),
                                   in(call.key, x),
                                   in(call.value, x),
                                   in(call.context, x),
                                   call.log_sum_exp.as<const float>(),
                                   in(call.context_gradient, x),
                                   out(call.query_gradient, x),
                                   out(call.key_gradient, x),
                                   out(call.value_gradient, x),
                                   call.workspace.as<float>()};
    attention_.backward(call.shape, arrays, stream_);
  });
}

void CudaKernels::attention_scores(const AttentionScoresArguments& call) {
  with_type(call.scores, [&](auto x) {
    using T = decltype(x);
    cuda::attention_scores(products_, call.shape, in(call.query, x), in(call.key, x),
                           call.scores.as<T>(), stream_);
  });
}

void CudaKernels::masked_softmax(const AttentionShape& shape, Array scores, Array probabilities) {
  with_type(scores, [&](auto x) {
    using T = decltype(x);
    cuda::masked_softmax(shape, scores.as<const T>(), probabilities.as<T>(), stream_);
  });
}

void CudaKernels::attention_context(const HeadProductArguments& call) {
  with_type(call.out, [&](auto x) {
    using T = decltype(x);
    cuda::attention_context(products_, call.shape, call.matrix.as<const T>(), in(call.heads, x),
                            call.out.as<T>(), stream_);
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

void CudaKernels::probabilities_gradient(const HeadProductArguments& call) {
  with_type(call.matrix, [&](auto x) {
    using T = decltype(x);
    cuda::probabilities_gradient(products_, call.shape, call.matrix.as<const T>(),
                                 in(call.heads, x), call.out.as<T>(), stream_);
  });
}

void CudaKernels::value_gradient(const ValueGradientArguments& call) {
  with_type(call.by_head, [&](auto x) {
    using T = decltype(x);
    cuda::value_gradient(products_, call.shape, call.probabilities.as<const T>(),
                         call.by_head.as<const T>(), call.gradient.as<T>(), stream_);
  });
}

void CudaKernels::masked_softmax_backward(const SoftmaxGradientArguments& call) {
  with_type(call.probabilities, [&](auto x) {
    using T = decltype(x);
    cuda::masked_softmax_backward(call.shape, call.probabilities.as<const T>(),
                                  call.probabilities_gradient.as<const T>(),
                                  call.scores_gradient.as<T>(), stream_);
  });
}

void CudaKernels::query_gradient(const HeadProductArguments& call) {
  with_type(call.out, [&](auto x) {
    using T = decltype(x);
    cuda::query_gradient(products_, call.shape, call.matrix.as<const T>(), in(call.heads, x),
                         call.out.as<T>(), stream_);
  });
}

void CudaKernels::key_gradient(const HeadProductArguments& call) {
  with_type(call.out, [&](auto x) {
    using T = decltype(x);
    cuda::key_gradient(products_, call.shape, call.matrix.as<const T>(), in(call.heads, x),
                       call.out.as<T>(), stream_);
  });
}

void CudaKernels::gather_qkv_gradient(const QkvGatherArguments& call) {
  with_type(call.query_gradient, [&](auto x) {
    using T = decltype(x);
    cuda::gather_qkv_gradient(call.shape, call.query_gradient.as<const T>(),
                              call.key_gradient.as<const T>(), call.value_gradient.as<const T>(),
                              out(call.query, x), out(call.key, x), out(call.value, x), stream_);
  });
}

void CudaKernels::norm(const NormArguments& call) {
  with_type(call.x, [&](auto one) {
    using T = decltype(one);
    cuda::norm(call.kind, call.x.as<const T>(), call.weight.as<const T>(), call.bias.as<const T>(),
               call.y.as<T>(), call.rows, call.width, call.x_stride, call.y_stride, stream_);
  });
}

void CudaKernels::add_norm(const AddNormArguments& call) {
  with_type(call.branch, [&](auto one) {
    using T = decltype(one);
    cuda::add_norm(call.kind, call.branch.as<const T>(), call.branch_bias.as<const T>(),
                   call.residual.as<const T>(), call.weight.as<const T>(), call.bias.as<const T>(),
                   call.sum.as<T>(), call.y.as<T>(), call.rows, call.width, stream_);
  });
}

void CudaKernels::norm_backward(const NormGradientArguments& call) {
  with_types(call.x, call.weight_gradient, [&](auto one, auto other) {
    using T = decltype(one);
    using G = decltype(other);
    cuda::norm_backward(call.kind, call.x.as<const T>(), call.weight.as<const T>(),
                        call.dy.as<const T>(), call.residual.as<const T>(), call.dx.as<T>(),
                        call.weight_gradient.as<G>(), call.bias_gradient.as<G>(), call.accumulate,
                        call.rows, call.width, call.x_stride, call.dy_stride,
                        workspace(2 * column_sum_workspace(call.width)), stream_);
  });
}

void CudaKernels::activation(const ActivationArguments& call) {
  with_type(call.up, [&](auto x) {
    using T = decltype(x);
    cuda::activation(call.kind, call.up.as<const T>(), call.bias.as<const T>(), call.out.as<T>(),
                     call.rows, call.width, stream_, call.linear.as<const T>());
  });
}

void CudaKernels::activation_backward(const ActivationGradientArguments& call) {
  const std::int64_t up_width = call.kind == ActivationKind::kSwiglu ? 2 * call.width : call.width;
  const auto run = [&](auto x, const auto* of_bias) {
    using T = decltype(x);
    cuda::activation_backward(call.kind, call.up.as<const T>(), call.bias.as<const T>(),
                              call.gradient.as<const T>(), call.up_gradient.as<T>(), of_bias,
                              call.rows, call.width, stream_, call.linear.as<const T>());
  };
  if (!call.bias_gradient) {
    return with_type(call.up, [&](auto x) {
      const ActivationBias<decltype(x)>* none = nullptr;
      run(x, none);
    });
  }
  with_types(call.up, call.bias_gradient, [&](auto x, auto y) {
    using G = decltype(y);
    const ActivationBias<G> of_bias{call.bias_gradient.as<G>(), call.accumulate,
                                    workspace(column_sum_workspace(up_width))};
    run(x, &of_bias);
  });
}

const float* CudaKernels::rotary_table(std::int64_t sequence, std::int64_t head_dim,
                                       const SequencePlaces& places) {
  const std::array<std::int64_t, 5> key{sequence, head_dim, places.half, places.first,
                                        places.second};
  auto found = rotary_tables_.find(key);
  if (found == rotary_tables_.end()) {
    const auto bytes = static_cast<std::size_t>(sequence * head_dim) * sizeof(float);
    found = rotary_tables_.try_emplace(key, bytes).first;
    cuda::rotary_table(sequence, head_dim, static_cast<float*>(found->second.data()), stream_,
                       places);
  }
  return static_cast<const float*>(found->second.data());
}

void CudaKernels::rotary(const RotaryArguments& call) {
  const float* table = rotary_table(call.sequence, call.head_dim, call.places);
  with_type(call.query.in.array, [&](auto x) {
    const auto side = [&](const RotaryArrays& of) {
      return RotarySide<decltype(x)>{of.heads, in(of.in, x), out(of.out, x)};
    };
    cuda::rotary(call.batch, call.sequence, call.head_dim, side(call.query), side(call.key), table,
                 call.backward, stream_);
  });
}

void CudaKernels::bias_gradient(const BiasGradientArguments& call) {
  with_types(call.data, call.gradient, [&](auto one, auto other) {
    using T = decltype(one);
    using G = decltype(other);
    cuda::bias_gradient(call.data.as<const T>(), call.gradient.as<G>(), call.rows, call.columns,
                        call.accumulate, workspace(column_sum_workspace(call.columns)), stream_);
  });
}

void CudaKernels::add_residual(const ResidualArguments& call) {
  with_type(call.branch, [&](auto x) {
    using T = decltype(x);
    cuda::add_residual(call.branch.as<const T>(), call.bias.as<const T>(),
                       call.residual.as<const T>(), call.out.as<T>(), call.rows, call.columns,
                       stream_);
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
  if (data.type == DataType::kFp8) {
    return fill_with_noise(data.as<Fp8>(), count, kSeed, stream_);
  }
  with_type(data, [&](auto x) { fill_with_noise(data.as<decltype(x)>(), count, kSeed, stream_); });
}

void CudaKernels::copy(Array from, Array to, std::int64_t count) {
  if (from.type == DataType::kFp8) {
    STEPCAST_ASSERT(to.type == from.type, "a cast makes fp8 and nothing else");
    return check(cudaMemcpyAsync(to.data, from.data, static_cast<std::size_t>(count),
                                 cudaMemcpyDeviceToDevice, static_cast<cudaStream_t>(stream_)),
                 "cudaMemcpyAsync");
  }
  with_type(from, [&](auto one) {
    with_type(to, [&](auto other) {
      cast(from.as<const decltype(one)>(), to.as<decltype(other)>(), count, stream_);
    });
  });
}

void CudaKernels::embed_tokens(const EmbeddingArguments& call) {
  with_type(call.table, [&](auto x) {
    using T = decltype(x);
    cuda::embed_tokens(call.slice, integers(call.tokens), call.count, call.table.as<const T>(),
                       call.out.as<T>(), stream_);
  });
}

void CudaKernels::embed_tokens_backward(const EmbeddingGradientArguments& call) {
  with_types(call.gradient, call.table_gradient, [&](auto one, auto other) {
    using T = decltype(one);
    using G = decltype(other);
    cuda::embed_tokens_backward(call.slice, integers(call.tokens), call.count,
                                call.gradient.as<const T>(), call.table_gradient.as<G>(), stream_);
  });
}

void CudaKernels::add_positions(const PositionArguments& call) {
  with_type(call.x, [&](auto one) {
    using T = decltype(one);
    cuda::add_positions(call.x.as<T>(), call.table.as<const T>(), call.rows, call.first_row,
                        call.sequence, call.width, stream_);
  });
}

void CudaKernels::add_positions_backward(const PositionArguments& call) {
  with_types(call.x, call.table, [&](auto one, auto other) {
    using T = decltype(one);
    using G = decltype(other);
    cuda::add_positions_backward(call.x.as<const T>(), call.table.as<G>(), call.rows,
                                 call.first_row, call.sequence, call.width, stream_);
  });
}

void CudaKernels::cross_entropy(const LossArguments& call) {
  with_type(call.logits, [&](auto x) {
    using T = decltype(x);
    cuda::cross_entropy(call.slice, call.logits.as<const T>(), integers(call.targets), call.rows,
                        call.largest.as<float>(), call.sum.as<float>(), call.target.as<float>(),
                        stream_);
  });
}

void CudaKernels::cross_entropy_backward(const LossGradientArguments& call) {
  with_type(call.logits, [&](auto x) {
    using T = decltype(x);
    cuda::cross_entropy_backward(call.slice, call.logits.as<T>(), integers(call.targets), call.rows,
                                 call.largest.as<const float>(), call.sum.as<const float>(),
                                 call.scale, stream_);
  });
}

void CudaKernels::rescale_sums(const RescaleArguments& call) {
  cuda::rescale_sums(call.local_largest.as<float>(), call.largest.as<float>(), call.sum.as<float>(),
                     call.rows, stream_);
}

void CudaKernels::add_loss(const LossSumArguments& call) {
  cuda::add_loss(call.largest.as<float>(), call.sum.as<float>(), call.target.as<float>(), call.rows,
                 call.total, stream_);
}

void CudaKernels::add_squares(Array data, std::int64_t count, double* total) {
  auto* of_blocks = reinterpret_cast<double*>(workspace(2 * kSumBlocks));
  with_type(data, [&](auto x) {
    sum_of_squares(data.as<const decltype(x)>(), count, of_blocks, total, true, stream_);
  });
}

void CudaKernels::narrow(const double* from, float* to) { cuda::narrow(from, to, stream_); }

void CudaKernels::adamw(const AdamWArguments& call) {
  // Gradients have the type of the call.rounded weights, or fp32.
  with_types(call.rounded ? call.rounded : call.gradient, call.gradient, [&](auto x, auto y) {
    using R = decltype(x);
    using G = decltype(y);
    cuda::adamw(call.settings, call.step, call.squared_norm, call.gradient.as<const G>(),
                call.weight.as<float>(), call.moment1.as<float>(), call.moment2.as<float>(),
                call.rounded.as<R>(), call.count, stream_);
  });
}

}  // namespace stepcast::cuda
