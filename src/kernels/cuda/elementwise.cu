// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/elementwise.h"

#include "kernels/cuda/eight.cuh"

namespace stepcast::cuda {
namespace {

template <typename T>
__global__ void add_residual_rows(const T* branch, const T* bias, const T* residual, T* out,
                                  std::int64_t rows, std::int64_t columns, bool chunks) {
  for_rows(rows, columns, [&](std::int64_t row, std::int64_t column) {
    const std::int64_t at = row * columns + column;
    const std::int64_t count = columns - column;
    Eight sum = load_eight(branch + at, count, chunks);
    const Eight more = load_eight(residual + at, count, chunks);
    const Eight offset = load_eight(bias + column, count, chunks);
#pragma unroll
    for (int i = 0; i < kEight; ++i) sum.at[i] = sum.at[i] + offset.at[i] + more.at[i];
    store_eight(sum, out + at, count, chunks);
  });
}

// `sum` may be a or b.
template <typename A, typename B, typename Sum>
__global__ void add_all(const A* a, const B* b, Sum* sum, std::int64_t count, bool chunks) {
  for_eights(count, [&](std::int64_t start) {
    Eight left = load_eight(a + start, count - start, chunks);
    const Eight right = load_eight(b + start, count - start, chunks);
#pragma unroll
    for (int i = 0; i < kEight; ++i) left.at[i] += right.at[i];
    store_eight(left, sum + start, count - start, chunks);
  });
}

template <typename From, typename To>
__global__ void scale_all(const From* from, To* to, float factor, std::int64_t count, bool chunks) {
  for_eights(count, [&](std::int64_t start) {
    Eight values = load_eight(from + start, count - start, chunks);
#pragma unroll
    for (int i = 0; i < kEight; ++i) values.at[i] *= factor;
    store_eight(values, to + start, count - start, chunks);
  });
}

template <typename T>
__global__ void fill_all(T* data, float value, std::int64_t count, bool chunks) {
  for_eights(count, [&](std::int64_t start) {
    Eight values;
#pragma unroll
    for (int i = 0; i < kEight; ++i) values.at[i] = value;
    store_eight(values, data + start, count - start, chunks);
  });
}

}  // namespace

template <typename T>
void add_residual(const T* branch, const T* bias, const T* residual, T* out, std::int64_t rows,
                  std::int64_t columns, Stream stream) {
  if (bias == nullptr) return add(branch, residual, out, rows * columns, stream);
  if (rows == 0 || columns == 0) return;
  const RowGrid grid = row_grid(rows, columns);
  launch("add_residual", add_residual_rows<T>, dim3(grid.across, grid.down), grid.threads, 0,
         stream, branch, bias, residual, out, rows, columns,
         in_chunks(columns, branch, bias, residual, out));
}

template <typename T>
void add(const T* a, const T* b, T* out, std::int64_t count, Stream stream) {
  if (count == 0) return;
  launch("add", add_all<T, T, T>, dim3(flat_blocks(count)), kFlatThreads, 0, stream, a, b, out,
         count, in_chunks(0, a, b, out));
}

template <typename T, typename Sum>
void accumulate(const T* more, Sum* sum, std::int64_t count, Stream stream) {
  if (count == 0) return;
  launch("accumulate", add_all<Sum, T, Sum>, dim3(flat_blocks(count)), kFlatThreads, 0, stream, sum,
         more, sum, count, in_chunks(0, more, sum));
}

template <typename T>
void scale(T* data, float factor, std::int64_t count, Stream stream) {
  if (count == 0) return;
  launch("scale", scale_all<T, T>, dim3(flat_blocks(count)), kFlatThreads, 0, stream, data, data,
         factor, count, in_chunks(0, data));
}

template <typename T>
void fill(T* data, float value, std::int64_t count, Stream stream) {
  if (count == 0) return;
  launch("fill", fill_all<T>, dim3(flat_blocks(count)), kFlatThreads, 0, stream, data, value, count,
         in_chunks(0, data));
}

template <typename From, typename To>
void cast(const From* from, To* to, std::int64_t count, Stream stream) {
  if (count == 0) return;
  launch("cast", scale_all<From, To>, dim3(flat_blocks(count)), kFlatThreads, 0, stream, from, to,
         1.0F, count, in_chunks(0, from, to));
}

#define STEPCAST_INSTANTIATE(T)                                                            \
  template void add_residual(const T*, const T*, const T*, T*, std::int64_t, std::int64_t, \
                             Stream);                                                      \
  template void add(const T*, const T*, T*, std::int64_t, Stream);                         \
  template void accumulate(const T*, T*, std::int64_t, Stream);                            \
  template void scale(T*, float, std::int64_t, Stream);                                    \
  template void fill(T*, float, std::int64_t, Stream);                                     \
  template void cast(const T*, Bf16*, std::int64_t, Stream);                               \
  template void cast(const T*, Fp16*, std::int64_t, Stream);                               \
  template void cast(const T*, float*, std::int64_t, Stream);
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(Bf16)
STEPCAST_INSTANTIATE(Fp16)
template void accumulate(const Bf16*, float*, std::int64_t, Stream);
template void accumulate(const Fp16*, float*, std::int64_t, Stream);

}  // namespace stepcast::cuda
