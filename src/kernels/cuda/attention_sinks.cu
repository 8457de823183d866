// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention_sinks.h"

#include "kernels/cuda/eight.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/strided.h"

namespace stepcast::cuda {
namespace {

constexpr unsigned kThreads = 256;

template <typename T>
struct Sinks {
  std::int64_t batch, heads, sequence, width;
  const T* logits;
  bool chunks;

  std::int64_t queries() const { return batch * heads * sequence; }
};

// A query of one head: which head, which token, and the place of its sum.
struct SinkRow {
  std::int64_t head, token, sum;
};
template <typename T>
__device__ inline SinkRow sink_row(const Sinks<T>& call, std::int64_t item) {
  const std::int64_t head = item % call.heads, token = item / call.heads;
  const std::int64_t b = token / call.sequence, i = token % call.sequence;
  return {head, token, (b * call.heads + head) * call.sequence + i};
}

__device__ inline float with_sink(float sum, float sink) {
  return fmaxf(sum, sink) + log1pf(expf(-fabsf(sum - sink)));
}

template <typename T>
__global__ void scale_contexts(Sinks<T> call, Heads<T> context, const float* sums,
                               std::int64_t items) {
  for_rows(items, call.width, [&](std::int64_t item, std::int64_t column) {
    const SinkRow at = sink_row(call, item);
    const float sum = sums[at.sum];
    const float factor = expf(sum - with_sink(sum, widen(call.logits[at.head])));
    T* to = context.data + at.token * context.stride + at.head * call.width + column;
    const std::int64_t left = call.width - column;
    Eight out = load_eight(to, left, call.chunks);
#pragma unroll
    for (int lane = 0; lane < kEight; ++lane) out.at[lane] *= factor;
    store_eight(out, to, left, call.chunks);
  });
}

// Runs behind scale_contexts, which reads the sums as they were.
template <typename T>
__global__ void join_sums(Sinks<T> call, float* sums, std::int64_t items) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       item < items; item += step) {
    const SinkRow at = sink_row(call, item);
    sums[at.sum] = with_sink(sums[at.sum], widen(call.logits[at.head]));
  }
}

// A block for each head, a warp for each of its tokens in turn.
template <typename T, typename Gradient>
__global__ void sum_of_head(Sinks<T> call, Heads<const T> context, Heads<const T> flowing,
                            const float* sums, Gradient* gradient) {
  __shared__ float scratch[kWarp];
  const std::int64_t head = blockIdx.x, lane = threadIdx.x % kWarp;
  const float logit = widen(call.logits[head]);
  float sum = 0;
  for (std::int64_t token = threadIdx.x / kWarp; token < call.batch * call.sequence;
       token += kThreads / kWarp) {
    const SinkRow at = sink_row(call, token * call.heads + head);
    const T* of_context = context.data + token * context.stride + head * call.width;
    const T* of_gradient = flowing.data + token * flowing.stride + head * call.width;
    const float weight = expf(logit - sums[at.sum]);
    for (std::int64_t i = lane; i < call.width; i += kWarp) {
      sum += weight * widen(of_context[i]) * widen(of_gradient[i]);
    }
  }
  sum = reduce_block<Plus>(sum, 0.0F, scratch);
  if (threadIdx.x == 0) gradient[head] = narrow<Gradient>(widen(gradient[head]) - sum);
}

template <typename T>
Sinks<T> sinks_of(const AttentionShape& shape, Array logits, bool chunks) {
  return {shape.batch,         shape.heads,          shape.sequence,
          shape.value_width(), logits.as<const T>(), chunks};
}

}  // namespace

template <typename T>
void add_sinks(const AttentionSinkArguments& call, Stream stream) {
  T* context = call.context.array.as<T>();
  const bool chunks =
      in_chunks(call.shape.value_width(), context) && call.context.stride % kEight == 0;
  const Sinks<T> sinks = sinks_of<T>(call.shape, call.sinks, chunks);
  const std::int64_t items = sinks.queries();
  if (items == 0) return;
  const RowGrid grid = row_grid(items, sinks.width);
  launch("add_sinks", scale_contexts<T>, dim3(grid.across, grid.down), grid.threads, 0, stream,
         sinks, Heads<T>{context, call.context.stride}, call.log_sum_exp.as<const float>(), items);
  launch("add_sinks", join_sums<T>, dim3(flat_blocks(items)), kFlatThreads, 0, stream, sinks,
         call.log_sum_exp.as<float>(), items);
}

template <typename T, typename Gradient>
void sink_gradient(const SinkGradientArguments& call, Stream stream) {
  const Sinks<T> sinks = sinks_of<T>(call.shape, call.sinks, false);
  if (sinks.queries() == 0) return;
  const Heads<const T> context{call.context.array.as<const T>(), call.context.stride};
  const Heads<const T> flowing{call.context_gradient.array.as<const T>(),
                               call.context_gradient.stride};
  launch("sink_gradient", sum_of_head<T, Gradient>, dim3(static_cast<unsigned>(sinks.heads)),
         kThreads, 0, stream, sinks, context, flowing, call.log_sum_exp.as<const float>(),
         call.gradient.as<Gradient>());
}

#define STEPCAST_INSTANTIATE(T, Gradient) \
  template void sink_gradient<T, Gradient>(const SinkGradientArguments&, Stream);
template void add_sinks<float>(const AttentionSinkArguments&, Stream);
template void add_sinks<Bf16>(const AttentionSinkArguments&, Stream);
template void add_sinks<Fp16>(const AttentionSinkArguments&, Stream);
STEPCAST_INSTANTIATE(float, float)
STEPCAST_INSTANTIATE(Bf16, Bf16)
STEPCAST_INSTANTIATE(Fp16, Fp16)
STEPCAST_INSTANTIATE(Bf16, float)
STEPCAST_INSTANTIATE(Fp16, float)

}  // namespace stepcast::cuda
