// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/dropout.h"

#include "kernels/cuda/eight.cuh"
#include "kernels/cuda/mixed_bits.cuh"

namespace stepcast::cuda {
namespace {

// Eight bytes of a mask in one access, where rows allow it.
__device__ inline void store_mask(const bool (&kept)[kEight], std::int8_t* to, std::int64_t count,
                                  bool chunks) {
  if (chunks && count >= kEight) {
    std::uint64_t bytes = 0;
#pragma unroll
    for (int i = 0; i < kEight; ++i) bytes |= static_cast<std::uint64_t>(kept[i]) << (8 * i);
    *reinterpret_cast<std::uint64_t*>(to) = bytes;
    return;
  }
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    if (i < count) to[i] = kept[i] ? 1 : 0;
  }
}

template <typename T>
__global__ void drop(DropoutShape shape, std::uint32_t limit, float scale, const T* x,
                     const T* bias, const T* residual, T* out, std::int8_t* mask, bool chunks) {
  for_rows(shape.rows, shape.columns, [&](std::int64_t row, std::int64_t column) {
    const std::int64_t at = row * shape.columns + column, count = shape.columns - column;
    Eight values = load_eight(x + at, count, chunks);
    if (bias != nullptr) add_to(values, load_eight(bias + column, count, chunks));
    bool kept[kEight];
#pragma unroll
    for (int i = 0; i < kEight; ++i) {
      kept[i] = mixed(mixed(static_cast<std::uint32_t>(at + i)) ^ shape.seed) >= limit;
      values.at[i] = kept[i] ? values.at[i] * scale : 0;
    }
    store_mask(kept, mask + at, count, chunks);
    if (residual != nullptr) add_to(values, load_eight(residual + at, count, chunks));
    store_eight(values, out + at, count, chunks);
  });
}

template <typename T>
__global__ void drop_backward(DropoutShape shape, float scale, const T* gradient,
                              const std::int8_t* mask, T* out, bool chunks) {
  for_rows(shape.rows, shape.columns, [&](std::int64_t row, std::int64_t column) {
    const std::int64_t at = row * shape.columns + column, count = shape.columns - column;
    Eight values = load_eight(gradient + at, count, chunks);
    std::uint64_t kept = 0;
    if (chunks && count >= kEight) {
      kept = *reinterpret_cast<const std::uint64_t*>(mask + at);
    } else {
#pragma unroll
      for (int i = 0; i < kEight; ++i) {
        if (i < count) kept |= static_cast<std::uint64_t>(mask[at + i]) << (8 * i);
      }
    }
#pragma unroll
    for (int i = 0; i < kEight; ++i) values.at[i] *= (kept >> (8 * i) & 1) != 0 ? scale : 0;
    store_eight(values, out + at, count, chunks);
  });
}

}  // namespace

template <typename T>
void dropout(const DropoutShape& shape, const T* x, const T* bias, const T* residual, T* out,
             std::int8_t* mask, Stream stream) {
  if (shape.rows == 0 || shape.columns == 0) return;
  const RowGrid grid = row_grid(shape.rows, shape.columns);
  launch("dropout", drop<T>, dim3(grid.across, grid.down), grid.threads, 0, stream, shape,
         shape.limit(), shape.scale(), x, bias, residual, out, mask,
         in_chunks(shape.columns, x, bias, residual, out, mask));
}

template <typename T>
void dropout_backward(const DropoutShape& shape, const T* gradient, const std::int8_t* mask, T* out,
                      Stream stream) {
  if (shape.rows == 0 || shape.columns == 0) return;
  const RowGrid grid = row_grid(shape.rows, shape.columns);
  launch("dropout_backward", drop_backward<T>, dim3(grid.across, grid.down), grid.threads, 0,
         stream, shape, shape.scale(), gradient, mask, out,
         in_chunks(shape.columns, gradient, out, mask));
}

#define STEPCAST_INSTANTIATE(T)                                                              \
  template void dropout(const DropoutShape&, const T*, const T*, const T*, T*, std::int8_t*, \
                        Stream);                                                             \
  template void dropout_backward(const DropoutShape&, const T*, const std::int8_t*, T*, Stream);
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(Bf16)
STEPCAST_INSTANTIATE(Fp16)

}  // namespace stepcast::cuda
