// SPDX-License-Identifier: Apache-2.0
// These kernels work on all of the parameters once a step: the norm of the gradients, AdamW.
#include <algorithm>
#include <cmath>

#include "core/assert.h"
#include "kernels/cuda/eight.cuh"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/reduce.cuh"

namespace stepcast::cuda {
namespace {

// Which thread adds what does not depend on the alignment, and so neither do the bits.
template <typename T>
__global__ void squares_of_blocks(const T* data, std::int64_t count, double* of_blocks,
                                  bool chunks) {
  __shared__ double scratch[kWarp];
  double sum = 0;
  for_eights(count, [&](std::int64_t start) {
    const Eight values = load_eight(data + start, count - start, chunks);
#pragma unroll
    for (int i = 0; i < kEight; ++i) {
      sum += static_cast<double>(values.at[i]) * static_cast<double>(values.at[i]);
    }
  });
  sum = reduce_block<Plus>(sum, 0.0, scratch);
  if (threadIdx.x == 0) of_blocks[blockIdx.x] = sum;
}

__global__ void sum_of_blocks(const double* of_blocks, unsigned blocks, double* sum,
                              bool accumulate) {
  __shared__ double scratch[kWarp];
  double own = 0;
  for (unsigned i = threadIdx.x; i < blocks; i += blockDim.x) own += of_blocks[i];
  own = reduce_block<Plus>(own, 0.0, scratch);
  if (threadIdx.x == 0) *sum = accumulate ? *sum + own : own;
}

__global__ void narrow_one(const double* from, float* to) {
  if (threadIdx.x == 0) *to = static_cast<float>(*from);
}

struct AdamWFactors {
  float beta1, rest1;  // rest: 1 - beta
  float beta2, rest2;
  float step_size;          // learning rate / (1 - beta1^t)
  float inverse_root_bias;  // 1/sqrt(1 - beta2^t)
  float epsilon;
  float kept;  // 1 - learning rate * weight decay
};

__device__ inline float clip_factor(const float* squared_norm) {
  if (squared_norm == nullptr) return 1;
  const float factor =
      static_cast<float>(kLargestNorm) / (sqrtf(*squared_norm) + static_cast<float>(kNormSlack));
  return factor < 1 ? factor : 1;
}

template <typename Gradient, typename Rounded>
__global__ void adamw_all(AdamWFactors by, const float* squared_norm, const Gradient* gradient,
                          float* weight, float* moment1, float* moment2, Rounded* rounded,
                          std::int64_t count, bool chunks) {
  const float clip = clip_factor(squared_norm);
  for_eights(count, [&](std::int64_t start) {
    const std::int64_t left = count - start;
    Eight g = load_eight(gradient + start, left, chunks);
    Eight w = load_eight(weight + start, left, chunks);
    Eight m = load_eight(moment1 + start, left, chunks);
    Eight v = load_eight(moment2 + start, left, chunks);
#pragma unroll
    for (int i = 0; i < kEight; ++i) {
      g.at[i] *= clip;
      m.at[i] = by.beta1 * m.at[i] + by.rest1 * g.at[i];
      v.at[i] = by.beta2 * v.at[i] + by.rest2 * g.at[i] * g.at[i];
      const float denominator = sqrtf(v.at[i]) * by.inverse_root_bias + by.epsilon;
      w.at[i] = by.kept * w.at[i] - by.step_size * m.at[i] / denominator;
    }
    store_eight(w, weight + start, left, chunks);
    store_eight(m, moment1 + start, left, chunks);
    store_eight(v, moment2 + start, left, chunks);
    if (rounded != nullptr) store_eight(w, rounded + start, left, chunks);
  });
}

template <typename Gradient, typename Rounded>
__global__ void sign_steps(const Gradient* gradient, float* weight, Rounded* rounded, float rate,
                           std::int64_t count, bool chunks) {
  for_eights(count, [&](std::int64_t start) {
    const std::int64_t left = count - start;
    const Eight g = load_eight(gradient + start, left, chunks);
    Eight w = load_eight(weight + start, left, chunks);
#pragma unroll
    for (int i = 0; i < kEight; ++i) {
      w.at[i] -= rate * static_cast<float>((g.at[i] > 0) - (g.at[i] < 0));
    }
    store_eight(w, weight + start, left, chunks);
    if (rounded != nullptr) store_eight(w, rounded + start, left, chunks);
  });
}

}  // namespace

template <typename T>
void sum_of_squares(const T* data, std::int64_t count, double* workspace, double* sum,
                    bool accumulate, Stream stream) {
  const unsigned blocks = std::min<unsigned>(flat_blocks(count), kSumBlocks);
  if (blocks > 0) {
    launch("sum_of_squares", squares_of_blocks<T>, dim3(blocks), kFlatThreads, 0, stream, data,
           count, workspace, in_chunks(0, data));
  }
  launch("sum_of_squares", sum_of_blocks, dim3(1), kFlatThreads, 0, stream, workspace, blocks, sum,
         accumulate);
}

void narrow(const double* from, float* to, Stream stream) {
  launch("narrow", narrow_one, dim3(1), kWarp, 0, stream, from, to);
}

template <typename Gradient, typename Rounded>
void adamw(const AdamW& settings, std::int64_t step, const float* squared_norm,
           const Gradient* gradient, float* weight, float* moment1, float* moment2,
           Rounded* rounded, std::int64_t count, Stream stream) {
  STEPCAST_ASSERT(step >= 1, "steps count from 1");
  if (count == 0) return;
  const auto t = static_cast<double>(step);
  const double bias1 = 1 - std::pow(settings.beta1, t);
  const double bias2 = 1 - std::pow(settings.beta2, t);
  const AdamWFactors by{static_cast<float>(settings.beta1),
                        static_cast<float>(1 - settings.beta1),
                        static_cast<float>(settings.beta2),
                        static_cast<float>(1 - settings.beta2),
                        static_cast<float>(settings.learning_rate / bias1),
                        static_cast<float>(1 / std::sqrt(bias2)),
                        static_cast<float>(settings.epsilon),
                        static_cast<float>(1 - settings.learning_rate * settings.weight_decay)};
  launch("adamw", adamw_all<Gradient, Rounded>, dim3(flat_blocks(count)), kFlatThreads, 0, stream,
         by, squared_norm, gradient, weight, moment1, moment2, rounded, count,
         in_chunks(0, gradient, weight, moment1, moment2, rounded));
}

template <typename Gradient, typename Rounded>
void step_by_sign(const Gradient* gradient, float* weight, Rounded* rounded, float rate,
                  std::int64_t count, Stream stream) {
  if (count == 0) return;
  launch("step_by_sign", sign_steps<Gradient, Rounded>, dim3(flat_blocks(count)), kFlatThreads, 0,
         stream, gradient, weight, rounded, rate, count, in_chunks(0, gradient, weight, rounded));
}

#define STEPCAST_INSTANTIATE_SUM(T) \
  template void sum_of_squares(const T*, std::int64_t, double*, double*, bool, Stream);
STEPCAST_INSTANTIATE_SUM(float)
STEPCAST_INSTANTIATE_SUM(Bf16)
STEPCAST_INSTANTIATE_SUM(Fp16)

#define STEPCAST_INSTANTIATE(Gradient, Rounded)                                                  \
  template void adamw(const AdamW&, std::int64_t, const float*, const Gradient*, float*, float*, \
                      float*, Rounded*, std::int64_t, Stream);                                   \
  template void step_by_sign(const Gradient*, float*, Rounded*, float, std::int64_t, Stream);
STEPCAST_INSTANTIATE(float, float)
STEPCAST_INSTANTIATE(float, Bf16)
STEPCAST_INSTANTIATE(float, Fp16)
STEPCAST_INSTANTIATE(Bf16, Bf16)
STEPCAST_INSTANTIATE(Fp16, Fp16)

}  // namespace stepcast::cuda
