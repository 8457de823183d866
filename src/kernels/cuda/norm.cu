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

constexpr unsigned kBackwardThreads = 512;  // which leaves 128 registers to each
constexpr int kMostWarps = kBackwardThreads / kWarp;

// A block works on several rows at once, with a team of whole warps for each. A thread holds the
// same eights of every row, `threads` eights apart, and the sums of their columns, in registers.
struct Team {
  unsigned threads;
  __device__ unsigned own() const { return threadIdx.x / threads; }
  __device__ unsigned member() const { return threadIdx.x % threads; }
  __device__ std::int64_t column(int eight) const {
    return (static_cast<std::int64_t>(eight) * threads + member()) * kEight;
  }
};

// Sums over a team's threads. The two halves of `scratch_` take turns, so that one barrier is
// enough: a half is written again only behind the barrier of the other.
class TeamSums {
 public:
  static constexpr int kMost = 3;
  __device__ TeamSums(const Team& team, float* scratch) : team_(team), scratch_(scratch) {}
  // All threads of the block come here.
  template <int kCount>
  __device__ void reduce(float (&sums)[kCount]) {
    static_assert(kCount <= kMost);
    const unsigned warps = team_.threads / kWarp, warp = threadIdx.x / kWarp;
    const unsigned lane = threadIdx.x % kWarp;
#pragma unroll
    for (float& sum : sums) sum = reduce_warp<Plus>(sum);
    if (warps == 1) return;
    float* own = scratch_ + (turn_ ? kMost * kMostWarps : 0);
    turn_ = !turn_;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (lane == 0) own[i * kMostWarps + warp] = sums[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const float part = lane < warps ? own[i * kMostWarps + team_.own() * warps + lane] : 0.0F;
      sums[i] = reduce_warp<Plus>(part);
    }
  }

 private:
  Team team_;
  float* scratch_;  // 2 * kMost * kMostWarps floats
  bool turn_ = false;
};

// A thread's sums of its columns. Rows that are wide leave too few registers for them: there they
// are in shared memory, where threads that neighbour each other find theirs side by side, without
// bank conflicts.
template <int kOwn>
inline constexpr bool kSharedSums = kOwn >= 4;

template <int kOwn, bool kShared>
class ColumnSums {
 public:
  // `shared`: eights of every team, but of the first only if all sums are there.
  __device__ ColumnSums(const Team& team, float* shared) : team_(team), shared_(shared) {
#pragma unroll
    for (int eight = 0; eight < kOwn; ++eight) {
#pragma unroll
      for (int lane = 0; lane < kEight; ++lane) at(eight, lane) = 0;
    }
  }
  __device__ float& at(int eight, int lane) {
    if constexpr (kShared) return of_team(team_.own(), eight, lane);
    return own_[kShared ? 0 : eight][lane];
  }
  // Adds up what the teams have of each column, in their order, and writes it to the block's slice.
  // All threads of the block come here.
  __device__ void write(float* slice, std::int64_t width) {
    if constexpr (!kShared) {
#pragma unroll
      for (int eight = 0; eight < kOwn; ++eight) {
#pragma unroll
        for (int lane = 0; lane < kEight; ++lane) {
          if (team_.own() > 0) of_team(team_.own(), eight, lane) = at(eight, lane);
        }
      }
    }
    __syncthreads();
    if (team_.own() == 0) {
      const unsigned teams = blockDim.x / team_.threads;
#pragma unroll
      for (int eight = 0; eight < kOwn; ++eight) {
#pragma unroll
        for (int lane = 0; lane < kEight; ++lane) {
          float sum = at(eight, lane);
          for (unsigned other = 1; other < teams; ++other) sum += of_team(other, eight, lane);
          const std::int64_t column = team_.column(eight) + lane;
          if (column < width) slice[column] = sum;
        }
      }
    }
    __syncthreads();  // shared memory is free again
  }

 private:
  __device__ float& of_team(unsigned team, int eight, int lane) {
    const std::int64_t before = team - (kShared ? 0 : 1);
    return shared_[((before * kOwn + eight) * kEight + lane) * team_.threads + team_.member()];
  }

  Team team_;
  float* shared_;
  float own_[kShared ? 1 : kOwn][kEight];
};

// A team's row, of which every thread holds its eights.
template <typename T, int kOwn>
struct HeldRow {
  PackedEight<T> x[kOwn], dy[kOwn];
};

// A team without a row, behind the last one, gets zeros.
template <typename T, int kOwn>
__device__ inline HeldRow<T, kOwn> load_row(const Backward<T>& b, const Team& team,
                                            std::int64_t row) {
  HeldRow<T, kOwn> out;
  const std::int64_t width = row < b.rows ? b.width : 0;
#pragma unroll
  for (int e = 0; e < kOwn; ++e) {
    const std::int64_t i = team.column(e);
    out.x[e] = load_packed(b.x + row * b.x_stride + i, width - i, b.chunks);
    out.dy[e] = load_packed(b.dy + row * b.dy_stride + i, width - i, b.chunks);
  }
  return out;
}

// Means over a row, with g = dy * weight and n = (x - mean)/sigma.
struct RowMeans {
  float mean, inverse;  // of x: 0 for RMSNorm; 1/sigma
  float g;              // 0 for RMSNorm
  float g_with_normal;
};

template <typename T, int kOwn>
__device__ inline RowMeans row_means(const Backward<T>& b, const Team& team,
                                     const HeldRow<T, kOwn>& row, std::int64_t width,
                                     TeamSums& of_team) {
  const bool layer = b.kind == NormKind::kLayer;
  const float per_column = 1 / static_cast<float>(b.width);
  float mean = 0;
  if (layer) {
    float sum[1] = {};
#pragma unroll
    for (int e = 0; e < kOwn; ++e) {
      const Eight values = unpacked(row.x[e]);
#pragma unroll
      for (int lane = 0; lane < kEight; ++lane) sum[0] += values.at[lane];
    }
    of_team.reduce(sum);
    mean = sum[0] * per_column;
  }
  float sums[3] = {};  // of (x - mean)^2, g, and g (x - mean)
#pragma unroll
  for (int e = 0; e < kOwn; ++e) {
    const std::int64_t i = team.column(e), count = width - i;
    const Eight values = unpacked(row.x[e]), up = unpacked(row.dy[e]);
    const Eight factor = load_eight(b.weight + i, count, b.chunks);
#pragma unroll
    for (int lane = 0; lane < kEight; ++lane) {
      const float distance = lane < count ? values.at[lane] - mean : 0;
      const float g = up.at[lane] * factor.at[lane];  // 0 beyond the row's end
      sums[0] += distance * distance;
      sums[1] += g;
      sums[2] += g * distance;
    }
  }
  of_team.reduce(sums);
  const float inverse = rsqrtf(sums[0] * per_column + static_cast<float>(kNormEpsilon));
  return {mean, inverse, layer ? sums[1] * per_column : 0, sums[2] * inverse * per_column};
}

// dx = (g - mean(g) - n mean(g n))/sigma, without mean(g) for RMSNorm. A row is read once and stays
// in registers; where these suffice, the next one comes while it is worked on.
template <typename T, int kOwn, bool kBias>
__global__ void __launch_bounds__(kBackwardThreads) norm_rows_backward(Backward<T> b, Team team) {
  constexpr bool kShared = kSharedSums<kOwn>, kAhead = !kShared;
  __shared__ float scratch[2 * TeamSums::kMost * kMostWarps];
  TeamSums of_team(team, scratch);
  const unsigned teams = blockDim.x / team.threads;
  auto* shared = reinterpret_cast<float*>(shared_memory());
  ColumnSums<kOwn, kShared> weight_sums(team, shared);
  float* of_bias = shared + (kShared ? blockDim.x * kOwn * kEight : 0);
  ColumnSums<kBias ? kOwn : 1, kShared && kBias> bias_sums(team, of_bias);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * teams;
  std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * teams;
  HeldRow<T, kOwn> next = load_row<T, kOwn>(b, team, first + team.own());
  for (; first < b.rows; first += step) {
    const std::int64_t row = first + team.own();
    const std::int64_t width = row < b.rows ? b.width : 0;
    const HeldRow<T, kOwn> own = next;
    if constexpr (kAhead) next = load_row<T, kOwn>(b, team, row + step);
    const RowMeans means = row_means(b, team, own, width, of_team);
#pragma unroll
    for (int e = 0; e < kOwn; ++e) {
      const std::int64_t i = team.column(e), count = width - i, at = row * b.dy_stride + i;
      const Eight values = unpacked(own.x[e]);
      const Eight factor = load_eight(b.weight + i, count, b.chunks);
      Eight out = unpacked(own.dy[e]);
#pragma unroll
      for (int lane = 0; lane < kEight; ++lane) {
        const float normal = (values.at[lane] - means.mean) * means.inverse;
        const float g = out.at[lane] * factor.at[lane];
        weight_sums.at(e, lane) += out.at[lane] * normal;
        if constexpr (kBias) bias_sums.at(e, lane) += out.at[lane];
        out.at[lane] = (g - means.g - normal * means.g_with_normal) * means.inverse;
      }
      if (b.residual != nullptr) add_to(out, load_eight(b.residual + at, count, b.chunks));
      if (count > 0) store_eight(out, b.dx + at, count, b.chunks);
    }
    if constexpr (!kAhead) next = load_row<T, kOwn>(b, team, row + step);
  }
  __syncthreads();  // all rows are done
  const std::int64_t slice = blockIdx.x * b.width;
  weight_sums.write(b.weight_slices + slice, b.width);
  if constexpr (kBias) bias_sums.write(b.bias_slices + slice, b.width);
}

// How many blocks there are, and rows at once in each. Every block writes its sums, which are read
// again; with so many rows to a block that is a 22nd part of what the rows move. Few rows get a
// block for each multiprocessor all the same: sums of so few stay in the second-level cache.
struct BackwardGrid {
  unsigned blocks, teams;
  std::size_t shared_bytes;
};
template <int kOwn, bool kBias>
BackwardGrid backward_grid(std::int64_t rows, std::int64_t width, std::int64_t row_bytes,
                           unsigned team) {
  constexpr std::int64_t kFloat = sizeof(float), kPart = 22, kVectors = kBias ? 2 : 1;
  constexpr std::int64_t kMostShared = 96 * 1024;
  const std::int64_t rows_of_block = kPart * 2 * kFloat * kVectors * width / row_bytes + 1;
  const std::int64_t of_team = team * kOwn * kEight * kFloat * (kSharedSums<kOwn> ? kVectors : 1);
  const std::int64_t most = kSharedSums<kOwn> ? kMostShared / of_team : kBackwardThreads;
  const std::int64_t teams =
      std::clamp<std::int64_t>(std::min<std::int64_t>(kBackwardThreads / team, most), 1, rows);
  const std::int64_t least =
      std::min<std::int64_t>((rows + teams - 1) / teams, multiprocessors("norm_backward"));
  const std::int64_t blocks = std::clamp<std::int64_t>(rows / rows_of_block, least, kColumnSlices);
  const std::int64_t in_shared = kSharedSums<kOwn> ? teams : teams - 1;
  return {static_cast<unsigned>(blocks), static_cast<unsigned>(teams),
          static_cast<std::size_t>(in_shared * of_team)};
}

// Avoids a last wave that leaves most multiprocessors idle for as long as a full one takes.
unsigned in_whole_waves(unsigned blocks, unsigned at_once) {
  return blocks <= at_once ? blocks : blocks - blocks % at_once;
}

unsigned row_threads(std::int64_t width) { return row_grid(1, width).threads; }

// Launches the kernel whose threads hold `kOwn` eights each, and returns how many slices it writes.
template <typename T, int kOwn, bool kBias>
std::int64_t launch_backward(const Backward<T>& b, Stream stream) {
  const std::int64_t eights = (b.width + kEight - 1) / kEight;
  const std::int64_t each = (eights + kOwn - 1) / kOwn;
  const Team team{static_cast<unsigned>((each + kWarp - 1) / kWarp * kWarp)};
  const std::int64_t passes = b.residual == nullptr ? 3 : 4;
  const BackwardGrid grid = backward_grid<kOwn, kBias>(
      b.rows, b.width, passes * b.width * static_cast<std::int64_t>(sizeof(T)), team.threads);
  const auto kernel = norm_rows_backward<T, kOwn, kBias>;
  const unsigned threads = grid.teams * team.threads;
  const auto at_once =
      static_cast<unsigned>(blocks_at_once("norm_backward", kernel, threads, grid.shared_bytes));
  const unsigned slices = in_whole_waves(grid.blocks, at_once);
  launch("norm_backward", kernel, dim3(slices), threads, grid.shared_bytes, stream, b, team);
  return slices;
}

// Threads hold more where rows are wide, so that a team fits into a block.
template <typename T, bool kBias>
std::int64_t launch_backward(const Backward<T>& b, Stream stream) {
  constexpr std::int64_t kTeam = 256 * kEight, kWidest = kBackwardThreads * kEight;
  if (b.width <= kTeam) return launch_backward<T, 1, kBias>(b, stream);
  if (b.width <= 2 * kTeam) return launch_backward<T, 2, kBias>(b, stream);
  if (b.width <= 4 * kWidest) return launch_backward<T, 4, kBias>(b, stream);
  if (b.width <= kWidestNorm) return launch_backward<T, 5, kBias>(b, stream);
  throw CudaError("norm_backward: rows of more than 20,480 elements have no kernel");
}

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
    const Backward<T> backward{kind,  x,        weight,    dy,        residual,    dx,    rows,
                               width, x_stride, dy_stride, workspace, bias_slices, chunks};
    slices = bias_gradient == nullptr ? launch_backward<T, false>(backward, stream)
                                      : launch_backward<T, true>(backward, stream);
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
