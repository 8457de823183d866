// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/norm.h"

#include <algorithm>

#include "kernels/cuda/eight.cuh"
#include "kernels/cuda/reduce.cuh"

namespace stepcast::cuda {
namespace {

struct RowStatistics {
  float mean;     // 0 for RMSNorm
  float inverse;  // 1/sqrt(variance + eps)
};

// The variance from differences to the mean: the row comes from the first cache then.
template <typename T>
__device__ inline RowStatistics row_statistics(NormKind kind, const T* x, std::int64_t width,
                                               bool chunks, float* scratch) {
  float mean = 0;
  if (kind == NormKind::kLayer) {
    for_columns(width, [&](std::int64_t i) {
      const Eight values = load_eight(x + i, width - i, chunks);
#pragma unroll
      for (int lane = 0; lane < kEight; ++lane) mean += values.at[lane];
    });
    mean = reduce_block<Plus>(mean, 0.0F, scratch) / static_cast<float>(width);
  }
  float squares = 0;
  for_columns(width, [&](std::int64_t i) {
    const Eight values = load_eight(x + i, width - i, chunks, mean);
#pragma unroll
    for (int lane = 0; lane < kEight; ++lane) {
      squares += (values.at[lane] - mean) * (values.at[lane] - mean);
    }
  });
  const float variance = reduce_block<Plus>(squares, 0.0F, scratch) / static_cast<float>(width);
  return {mean, rsqrtf(variance + static_cast<float>(kNormEpsilon))};
}

template <typename T>
__device__ inline void normalise_row(NormKind kind, const T* x, const T* weight, const T* bias,
                                     T* y, std::int64_t width, bool chunks, float* scratch) {
  const RowStatistics of_row = row_statistics(kind, x, width, chunks, scratch);
  for_columns(width, [&](std::int64_t i) {
    Eight values = load_eight(x + i, width - i, chunks);
    const Eight factor = load_eight(weight + i, width - i, chunks);
    Eight offset{};
    if (bias != nullptr) offset = load_eight(bias + i, width - i, chunks);
#pragma unroll
    for (int lane = 0; lane < kEight; ++lane) {
      const float normal = (values.at[lane] - of_row.mean) * of_row.inverse;
      values.at[lane] = normal * factor.at[lane] + offset.at[lane];
    }
    store_eight(values, y + i, width - i, chunks);
  });
}

template <typename T>
__global__ void norm_rows(NormKind kind, const T* x, const T* weight, const T* bias, T* y,
                          std::int64_t rows, std::int64_t width, std::int64_t x_stride,
                          std::int64_t y_stride, bool chunks) {
  __shared__ float scratch[kWarp];
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    normalise_row(kind, x + row * x_stride, weight, bias, y + row * y_stride, width, chunks,
                  scratch);
  }
}

// The branch joins the residual stream first; the norm is of the sum as it is stored.
template <typename T>
struct Join {
  const T* branch;
  const T* bias;  // may be null
  const T* residual;
  T* sum;
};

template <typename T>
__global__ void add_norm_rows(NormKind kind, Join<T> join, const T* weight, const T* bias, T* y,
                              std::int64_t rows, std::int64_t width, bool chunks) {
  __shared__ float scratch[kWarp];
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    T* of_sum = join.sum + row * width;
    for_columns(width, [&](std::int64_t i) {
      const std::int64_t at = row * width + i, count = width - i;
      Eight sum = load_eight(join.branch + at, count, chunks);
      if (join.bias != nullptr) add_to(sum, load_eight(join.bias + i, count, chunks));
      add_to(sum, load_eight(join.residual + at, count, chunks));
      store_eight(sum, of_sum + i, count, chunks);
    });
    // A thread reads what it wrote itself, which is in the first cache.
    normalise_row(kind, of_sum, weight, bias, y + row * width, width, chunks, scratch);
  }
}

template <typename T>
struct Backward {
  NormKind kind;
  const T* x;
  const T* weight;
  const T* dy;
  const T* residual;  // may be null; lies as dy does
  T* dx;
  std::int64_t rows, width, x_stride, dy_stride;
  float* weight_slices;
  float* bias_slices;  // may be null
  bool chunks;
};

constexpr unsigned kBackwardThreads = 1024;

// A block works on several rows at once, with a team of whole warps for each.
struct Team {
  unsigned threads;
  __device__ unsigned own() const { return threadIdx.x / threads; }
  __device__ unsigned member() const { return threadIdx.x % threads; }

  // Calls body(column) for this thread's eights of the team's row.
  template <typename Body>
  __device__ void for_columns(std::int64_t columns, const Body& body) const {
    const auto step = static_cast<std::int64_t>(threads) * kEight;
    for (std::int64_t i = static_cast<std::int64_t>(member()) * kEight; i < columns; i += step) {
      body(i);
    }
  }

  // Sums over the team's threads. All threads of the block come here. `scratch`: 2*kWarp floats.
  __device__ void reduce(float& a, float& b, float* scratch) const {
    const unsigned warps = threads / kWarp, lane = threadIdx.x % kWarp;
    a = reduce_warp<Plus>(a);
    b = reduce_warp<Plus>(b);
    if (lane == 0) {
      scratch[threadIdx.x / kWarp] = a;
      scratch[kWarp + threadIdx.x / kWarp] = b;
    }
    __syncthreads();
    a = reduce_warp<Plus>(lane < warps ? scratch[own() * warps + lane] : 0.0F);
    b = reduce_warp<Plus>(lane < warps ? scratch[kWarp + own() * warps + lane] : 0.0F);
    __syncthreads();  // scratch is free again
  }
};

// Sums of a team's columns in shared memory, of which every thread has its own. Threads that
// neighbour each other find theirs side by side: no bank conflicts.
class ColumnSums {
 public:
  __device__ ColumnSums(float* of_teams, std::int64_t width, unsigned team)
      : eights_((width + kEight - 1) / kEight), of_team_(of_teams + team * kEight * eights_) {}
  __device__ float& at(std::int64_t eight, int lane) { return of_team_[lane * eights_ + eight]; }
  // The value of another team.
  __device__ float of(std::int64_t teams_further, std::int64_t column) const {
    return of_team_[(teams_further * kEight + column % kEight) * eights_ + column / kEight];
  }

 private:
  std::int64_t eights_;
  float* of_team_;
};

// Does for a team's row what row_statistics() does. `width` is 0 when the team has no row.
template <typename T>
__device__ inline RowStatistics team_statistics(const Backward<T>& b, const Team& team, const T* x,
                                                std::int64_t width, float* scratch) {
  float mean = 0, squares = 0, unused = 0;
  if (b.kind == NormKind::kLayer) {
    team.for_columns(width, [&](std::int64_t i) {
      const Eight values = load_eight(x + i, width - i, b.chunks);
#pragma unroll
      for (int lane = 0; lane < kEight; ++lane) mean += values.at[lane];
    });
    team.reduce(mean, unused, scratch);
    mean /= static_cast<float>(b.width);
  }
  team.for_columns(width, [&](std::int64_t i) {
    const Eight values = load_eight(x + i, width - i, b.chunks, mean);
#pragma unroll
    for (int lane = 0; lane < kEight; ++lane) {
      squares += (values.at[lane] - mean) * (values.at[lane] - mean);
    }
  });
  team.reduce(squares, unused, scratch);
  const float variance = squares / static_cast<float>(b.width);
  return {mean, rsqrtf(variance + static_cast<float>(kNormEpsilon))};
}

// With n = (x - mean)/sigma and g = dy * weight: dx = (g - mean(g) - n mean(g n))/sigma, without
// mean(g) for RMSNorm. A team without a row (`row` is beyond the last) only keeps step.
template <typename T>
__device__ inline void row_backward(const Backward<T>& b, const Team& team, std::int64_t row,
                                    float* scratch, ColumnSums weight_sums, ColumnSums bias_sums) {
  const std::int64_t width = row < b.rows ? b.width : 0;
  const T* x = b.x + row * b.x_stride;
  const T* dy = b.dy + row * b.dy_stride;
  const RowStatistics of_row = team_statistics(b, team, x, width, scratch);
  float sum = 0, sum_with_normal = 0;
  team.for_columns(width, [&](std::int64_t i) {
    const std::int64_t count = width - i;
    const Eight values = load_eight(x + i, count, b.chunks);
    const Eight up = load_eight(dy + i, count, b.chunks);
    const Eight factor = load_eight(b.weight + i, count, b.chunks);
#pragma unroll
    for (int lane = 0; lane < kEight; ++lane) {
      const float normal = (values.at[lane] - of_row.mean) * of_row.inverse;
      const float g = up.at[lane] * factor.at[lane];  // 0 beyond the row's end
      sum += g;
      sum_with_normal += g * normal;
      weight_sums.at(i / kEight, lane) += up.at[lane] * normal;
      if (b.bias_slices != nullptr) bias_sums.at(i / kEight, lane) += up.at[lane];
    }
  });
  team.reduce(sum, sum_with_normal, scratch);
  const float mean = b.kind == NormKind::kLayer ? sum / static_cast<float>(b.width) : 0;
  const float mean_with_normal = sum_with_normal / static_cast<float>(b.width);
  team.for_columns(width, [&](std::int64_t i) {
    const std::int64_t count = width - i;
    const Eight values = load_eight(x + i, count, b.chunks);
    const Eight factor = load_eight(b.weight + i, count, b.chunks);
    Eight out = load_eight(dy + i, count, b.chunks);
#pragma unroll
    for (int lane = 0; lane < kEight; ++lane) {
      const float normal = (values.at[lane] - of_row.mean) * of_row.inverse;
      const float g = out.at[lane] * factor.at[lane];
      out.at[lane] = (g - mean - normal * mean_with_normal) * of_row.inverse;
    }
    const std::int64_t at = row * b.dy_stride + i;
    if (b.residual != nullptr) add_to(out, load_eight(b.residual + at, count, b.chunks));
    store_eight(out, b.dx + at, count, b.chunks);
  });
}

template <typename T>
__global__ void __launch_bounds__(kBackwardThreads) norm_rows_backward(Backward<T> b, Team team) {
  __shared__ float scratch[2 * kWarp];
  auto* sums = reinterpret_cast<float*>(shared_memory());
  const unsigned teams = blockDim.x / team.threads;
  const std::int64_t eights = (b.width + kEight - 1) / kEight;
  float* of_bias = sums + teams * eights * kEight;
  ColumnSums weight_sums(sums, b.width, team.own()), bias_sums(of_bias, b.width, team.own());
  team.for_columns(b.width, [&](std::int64_t i) {
    for (int lane = 0; lane < kEight; ++lane) {
      weight_sums.at(i / kEight, lane) = 0;
      if (b.bias_slices != nullptr) bias_sums.at(i / kEight, lane) = 0;
    }
  });
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * teams;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * teams; first < b.rows;
       first += step) {
    row_backward(b, team, first + team.own(), scratch, weight_sums, bias_sums);
  }
  __syncthreads();  // the sums of all teams are there
  const ColumnSums of_weight(sums, b.width, 0), of_all_bias(of_bias, b.width, 0);
  for (std::int64_t column = threadIdx.x; column < b.width; column += blockDim.x) {
    float weight = 0, bias = 0;
    for (unsigned other = 0; other < teams; ++other) {
      weight += of_weight.of(other, column);
      if (b.bias_slices != nullptr) bias += of_all_bias.of(other, column);
    }
    const std::int64_t at = blockIdx.x * b.width + column;
    b.weight_slices[at] = weight;
    if (b.bias_slices != nullptr) b.bias_slices[at] = bias;
  }
}

// How many blocks there are, and rows at once in each. Every block writes its sums, which are read
// again; with so many rows to a block that is a 22nd part of what the rows move. Few rows get 32
// blocks all the same.
struct BackwardGrid {
  unsigned blocks, teams;
  std::size_t shared_bytes;
};
BackwardGrid backward_grid(std::int64_t rows, std::int64_t width, std::int64_t row_bytes,
                           unsigned team, bool has_bias) {
  constexpr std::int64_t kSharedBytes = 96 * 1024, kFloat = sizeof(float), kPart = 22;
  const std::int64_t vectors = has_bias ? 2 : 1;
  const std::int64_t rows_of_block = kPart * 2 * kFloat * vectors * width / row_bytes + 1;
  const std::int64_t of_team = vectors * ((width + kEight - 1) / kEight * kEight) * kFloat;
  const std::int64_t teams = std::clamp<std::int64_t>(
      std::min<std::int64_t>(kBackwardThreads / team, kSharedBytes / of_team), 1, rows);
  const std::int64_t least = std::min<std::int64_t>((rows + teams - 1) / teams, 32);
  const std::int64_t blocks = std::clamp<std::int64_t>(rows / rows_of_block, least, kColumnSlices);
  return {static_cast<unsigned>(blocks), static_cast<unsigned>(teams),
          static_cast<std::size_t>(teams * of_team)};
}

// Avoids a last wave that leaves most multiprocessors idle for as long as a full one takes.
unsigned in_whole_waves(unsigned blocks, unsigned at_once) {
  return blocks <= at_once ? blocks : blocks - blocks % at_once;
}

unsigned row_threads(std::int64_t width) { return row_grid(1, width).threads; }

}  // namespace

template <typename T>
void norm(NormKind kind, const T* x, const T* weight, const T* bias, T* y, std::int64_t rows,
          std::int64_t width, std::int64_t x_stride, std::int64_t y_stride, Stream stream) {
  if (rows == 0 || width == 0) return;
  const bool chunks =
      in_chunks(width, x, weight, bias, y) && x_stride % kEight == 0 && y_stride % kEight == 0;
  launch("norm", norm_rows<T>, dim3(static_cast<unsigned>(rows < 65536 ? rows : 65536)),
         row_threads(width), 0, stream, kind, x, weight, bias, y, rows, width, x_stride, y_stride,
         chunks);
}

template <typename T>
void add_norm(NormKind kind, const T* branch, const T* branch_bias, const T* residual,
              const T* weight, const T* bias, T* sum, T* y, std::int64_t rows, std::int64_t width,
              Stream stream) {
  if (rows == 0 || width == 0) return;
  const Join<T> join{branch, branch_bias, residual, sum};
  launch("add_norm", add_norm_rows<T>, dim3(static_cast<unsigned>(rows < 65536 ? rows : 65536)),
         row_threads(width), 0, stream, kind, join, weight, bias, y, rows, width,
         in_chunks(width, branch, branch_bias, residual, weight, bias, sum, y));
}

template <typename T, typename Gradient>
void norm_backward(NormKind kind, const T* x, const T* weight, const T* dy, const T* residual,
                   T* dx, Gradient* weight_gradient, Gradient* bias_gradient, bool accumulate,
                   std::int64_t rows, std::int64_t width, std::int64_t x_stride,
                   std::int64_t dy_stride, float* workspace, Stream stream) {
  if (width == 0) return;
  float* bias_slices = bias_gradient == nullptr ? nullptr : workspace + column_sum_workspace(width);
  std::int64_t slices = 0;
  if (rows > 0) {
    const bool chunks = in_chunks(width, x, weight, dy, residual, dx) && x_stride % kEight == 0 &&
                        dy_stride % kEight == 0;
    const Team team{row_threads(width)};
    const std::int64_t passes = residual == nullptr ? 3 : 4;
    const BackwardGrid grid =
        backward_grid(rows, width, passes * width * static_cast<std::int64_t>(sizeof(T)),
                      team.threads, bias_gradient != nullptr);
    const Backward<T> backward{kind,  x,        weight,    dy,        residual,    dx,    rows,
                               width, x_stride, dy_stride, workspace, bias_slices, chunks};
    const unsigned threads = grid.teams * team.threads;
    const auto at_once = static_cast<unsigned>(
        blocks_at_once("norm_backward", norm_rows_backward<T>, threads, grid.shared_bytes));
    slices = in_whole_waves(grid.blocks, at_once);
    launch("norm_backward", norm_rows_backward<T>, dim3(static_cast<unsigned>(slices)), threads,
           grid.shared_bytes, stream, backward, team);
  }
  sum_slices(workspace, slices, width, weight_gradient, width, accumulate, stream);
  if (bias_gradient != nullptr) {
    sum_slices(bias_slices, slices, width, bias_gradient, width, accumulate, stream);
  }
}

#define STEPCAST_INSTANTIATE_GRADIENT(T, Gradient)                                             \
  template void norm_backward(NormKind, const T*, const T*, const T*, const T*, T*, Gradient*, \
                              Gradient*, bool, std::int64_t, std::int64_t, std::int64_t,       \
                              std::int64_t, float*, Stream);
#define STEPCAST_INSTANTIATE(T)                                                              \
  template void norm(NormKind, const T*, const T*, const T*, T*, std::int64_t, std::int64_t, \
                     std::int64_t, std::int64_t, Stream);                                    \
  template void add_norm(NormKind, const T*, const T*, const T*, const T*, const T*, T*, T*, \
                         std::int64_t, std::int64_t, Stream);                                \
  STEPCAST_INSTANTIATE_GRADIENT(T, T)
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(Bf16)
STEPCAST_INSTANTIATE(Fp16)
STEPCAST_INSTANTIATE_GRADIENT(Bf16, float)
STEPCAST_INSTANTIATE_GRADIENT(Fp16, float)

}  // namespace stepcast::cuda
