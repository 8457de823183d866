// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/context.h"

#include "kernels/cuda/eight.cuh"
#include "kernels/strided.h"

namespace stepcast::cuda {
namespace {

struct Strides {
  std::int64_t of[3];
  __device__ std::int64_t at(std::int64_t i, std::int64_t j, std::int64_t k) const {
    return i * of[0] + j * of[1] + k * of[2];
  }
};
Strides strides_of(const SpreadRows& rows) {
  return {{rows.strides[0], rows.strides[1], rows.strides[2]}};
}

template <typename From, typename To>
struct Spread {
  const From* from;  // null: zeros
  To* to;
  Strides from_strides, to_strides;
  std::int64_t counts[3];
  std::int64_t columns, terms, term_stride;
  bool adds, chunks;
};

template <typename From, typename To>
__global__ void spread_all(Spread<From, To> call) {
  for_rows(call.counts[0] * call.counts[1] * call.counts[2], call.columns,
           [&](std::int64_t row, std::int64_t column) {
             const std::int64_t k = row % call.counts[2], outer = row / call.counts[2];
             const std::int64_t j = outer % call.counts[1], i = outer / call.counts[1];
             const std::int64_t left = call.columns - column;
             To* to = call.to + call.to_strides.at(i, j, k) + column;
             Eight sum{};
             if (call.adds) sum = load_eight(to, left, call.chunks);
             if (call.from != nullptr) {
               const From* from = call.from + call.from_strides.at(i, j, k) + column;
               for (std::int64_t term = 0; term < call.terms; ++term) {
                 add_to(sum, load_eight(from + term * call.term_stride, left, call.chunks));
               }
             }
             store_eight(sum, to, left, call.chunks);
           });
}

template <typename T, typename Context>
struct Merge {
  std::int64_t heads, width, rows, all_rows, first_row;
  Heads<const T> part;
  const float* part_sums;
  Heads<Context> context;
  float* sums;
  bool is_first, chunks;
};

// A query of one head: where it lies.
struct MergedRow {
  std::int64_t token, head, part_sum, sum;
};
template <typename T, typename Context>
__device__ inline MergedRow merged_row(const Merge<T, Context>& call, std::int64_t item) {
  const std::int64_t h = item % call.heads, query = item / call.heads;
  const std::int64_t b = query / call.rows, i = query % call.rows;
  const std::int64_t row = call.first_row + i;
  return {b * call.all_rows + row, h, b * call.heads * call.all_rows + h * call.rows + i,
          (b * call.heads + h) * call.all_rows + row};
}

__device__ inline float joined_sum(float a, float b) {
  const float larger = fmaxf(a, b), smaller = fminf(a, b);
  return larger + log1pf(expf(smaller - larger));
}

template <typename T, typename Context>
__global__ void merge_contexts(Merge<T, Context> call, std::int64_t items) {
  for_rows(items, call.width, [&](std::int64_t item, std::int64_t column) {
    const MergedRow at = merged_row(call, item);
    const std::int64_t left = call.width - column, begin = at.head * call.width + column;
    Context* to = call.context.data + at.token * call.context.stride + begin;
    Eight out = load_eight(call.part.data + at.token * call.part.stride + begin, left, call.chunks);
    if (!call.is_first) {
      const float sum = call.sums[at.sum], more = call.part_sums[at.part_sum];
      const float joined = joined_sum(sum, more);
      const float kept = expf(sum - joined), joining = expf(more - joined);
      const Eight old = load_eight(to, left, call.chunks);
#pragma unroll
      for (int lane = 0; lane < kEight; ++lane) {
        out.at[lane] = kept * old.at[lane] + joining * out.at[lane];
      }
    }
    store_eight(out, to, left, call.chunks);
  });
}

// Runs behind merge_contexts, which reads the sums as they were.
template <typename T, typename Context>
__global__ void merge_sums(Merge<T, Context> call, std::int64_t items) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       item < items; item += step) {
    const MergedRow at = merged_row(call, item);
    const float more = call.part_sums[at.part_sum];
    call.sums[at.sum] = call.is_first ? more : joined_sum(call.sums[at.sum], more);
  }
}

bool strides_in_chunks(const SpreadRows& rows) {
  return rows.strides[0] % kEight == 0 && rows.strides[1] % kEight == 0 &&
         rows.strides[2] % kEight == 0;
}

}  // namespace

template <typename From, typename To>
void move_spread_rows(const SpreadRowsArguments& call, Stream stream) {
  const std::int64_t rows = call.counts[0] * call.counts[1] * call.counts[2];
  if (rows == 0 || call.columns == 0) return;
  const From* from = call.from.array.as<const From>();
  To* to = call.to.array.as<To>();
  const bool chunks = in_chunks(call.term_stride, from, to) && strides_in_chunks(call.from) &&
                      strides_in_chunks(call.to);
  const Spread<From, To> spread{from,
                                to,
                                strides_of(call.from),
                                strides_of(call.to),
                                {call.counts[0], call.counts[1], call.counts[2]},
                                call.columns,
                                call.terms,
                                call.term_stride,
                                call.adds,
                                chunks};
  const RowGrid grid = row_grid(rows, call.columns);
  launch("spread_rows", spread_all<From, To>, dim3(grid.across, grid.down), grid.threads, 0, stream,
         spread);
}

template <typename T, typename Context>
void merge_part(const MergedPartArguments& call, Stream stream) {
  const std::int64_t items = call.batch * call.rows * call.heads;
  if (items == 0 || call.width == 0) return;
  const T* part = call.part.array.as<const T>();
  Context* context = call.context.array.as<Context>();
  const bool chunks = in_chunks(call.width, part, context) && call.part.stride % kEight == 0 &&
                      call.context.stride % kEight == 0;
  const Merge<T, Context> merge{call.heads,
                                call.width,
                                call.rows,
                                call.all_rows,
                                call.first_row,
                                {part, call.part.stride},
                                call.part_sums.as<const float>(),
                                {context, call.context.stride},
                                call.sums.as<float>(),
                                call.is_first,
                                chunks};
  const RowGrid grid = row_grid(items, call.width);
  launch("merge_part", merge_contexts<T, Context>, dim3(grid.across, grid.down), grid.threads, 0,
         stream, merge, items);
  launch("merge_part", merge_sums<T, Context>, dim3(flat_blocks(items)), kFlatThreads, 0, stream,
         merge, items);
}

#define STEPCAST_INSTANTIATE(From, To) \
  template void move_spread_rows<From, To>(const SpreadRowsArguments&, Stream);
#define STEPCAST_INSTANTIATE_FROM(From) \
  STEPCAST_INSTANTIATE(From, float)     \
  STEPCAST_INSTANTIATE(From, Bf16)      \
  STEPCAST_INSTANTIATE(From, Fp16)
STEPCAST_INSTANTIATE_FROM(float)
STEPCAST_INSTANTIATE_FROM(Bf16)
STEPCAST_INSTANTIATE_FROM(Fp16)
template void merge_part<float, float>(const MergedPartArguments&, Stream);
template void merge_part<Bf16, Bf16>(const MergedPartArguments&, Stream);
template void merge_part<Bf16, float>(const MergedPartArguments&, Stream);
template void merge_part<Fp16, Fp16>(const MergedPartArguments&, Stream);
template void merge_part<Fp16, float>(const MergedPartArguments&, Stream);

}  // namespace stepcast::cuda
