// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/router.h"

#include "core/assert.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/reduce.cuh"

namespace stepcast::cuda {
namespace {

constexpr unsigned kWarps = 4;  // of a block, each with a token
constexpr std::int64_t kTile = 64;
constexpr unsigned kScanWarps = 8;

std::int64_t tiles_of(const RouterShape& shape) { return (shape.tokens + kTile - 1) / kTile; }

unsigned token_blocks(const RouterShape& shape) {
  const std::int64_t blocks = (shape.tokens + kWarps - 1) / kWarps;
  return static_cast<unsigned>(blocks < 65536 ? blocks : 65536);
}

// Calls body(token) in the warp that the token belongs to.
template <typename Body>
__device__ inline void for_tokens(std::int64_t tokens, const Body& body) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kWarps;
  std::int64_t token = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  for (; token < tokens; token += step) body(token);
}

// An expert and its logit; `expert` below 0: none.
struct Candidate {
  float logit;
  int expert;
};
__device__ inline bool comes_before(const Candidate& a, const Candidate& b) {
  if (a.expert < 0 || b.expert < 0) return b.expert < 0 && a.expert >= 0;
  return a.logit > b.logit || (a.logit == b.logit && a.expert < b.expert);
}
__device__ inline Candidate first_of_warp(Candidate own) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    const Candidate other{__shfl_xor_sync(kAllLanes, own.logit, distance),
                          __shfl_xor_sync(kAllLanes, own.expert, distance)};
    if (comes_before(other, own)) own = other;
  }
  // Lanes may differ where a logit is no number.
  own.expert = __shfl_sync(kAllLanes, own.expert, 0);
  return own;
}

// Takes the best experts by what the warp's lanes have in `own`.
__device__ inline void take_best(const RouterShape& shape, int lane, const float* own,
                                 std::int8_t* taken) {
  for (std::int64_t k = 0; k < shape.top_k; ++k) {
    Candidate best{0, -1};
    for (int i = lane; i < static_cast<int>(shape.experts); i += kWarp) {
      const Candidate next{own[i], i};
      if (taken[i] == 0 && comes_before(next, best)) best = next;
    }
    best = first_of_warp(best);
    if (best.expert % kWarp == lane) taken[best.expert] = 1;
  }
}

// A warp for each token; lane i has the experts i, i + 32, ... Their logits and whether they are
// taken stay in shared memory.
__global__ void route_tokens(RouterShape shape, const float* logits, const std::int64_t* choice,
                             const float* bias, float* probabilities, std::int8_t* chosen) {
  const int experts = static_cast<int>(shape.experts);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  auto* all = reinterpret_cast<float*>(shared_memory());
  float* own = all + warp * experts;
  auto* taken =
      reinterpret_cast<std::int8_t*>(all + static_cast<int>(kWarps) * experts) + warp * experts;
  for_tokens(shape.tokens, [&](std::int64_t token) {
    const std::int64_t begin = token * experts;
    float largest = -INFINITY;
    for (int i = lane; i < experts; i += kWarp) {
      own[i] = logits[begin + i];
      taken[i] = 0;
      largest = Larger()(own[i], largest);
    }
    largest = reduce_warp<Larger>(largest);
    if (choice != nullptr) {
      __syncwarp();
      for (std::int64_t i = lane; i < shape.top_k; i += kWarp) {
        taken[choice[token * shape.top_k + i]] = 1;
      }
      __syncwarp();
    }
    if (choice == nullptr && bias == nullptr) take_best(shape, lane, own, taken);
    float sum = 0;
    for (int i = lane; i < experts; i += kWarp) {
      own[i] = expf(own[i] - largest);
      sum += own[i];
    }
    sum = reduce_warp<Plus>(sum);
    for (int i = lane; i < experts; i += kWarp) {
      own[i] /= sum;
      probabilities[begin + i] = own[i];
      if (bias != nullptr) own[i] += bias[i];
    }
    if (choice == nullptr && bias != nullptr) take_best(shape, lane, own, taken);
    for (int i = lane; i < experts; i += kWarp) chosen[begin + i] = taken[i];
    __syncwarp();
  });
}

// A block for each tile of tokens, a thread for an expert.
__global__ void count_in_tiles(RouterShape shape, const std::int8_t* chosen, std::int32_t* before) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kTile;
  const std::int64_t end = first + kTile < shape.tokens ? first + kTile : shape.tokens;
  for (std::int64_t expert = threadIdx.x; expert < shape.experts; expert += blockDim.x) {
    std::int32_t count = 0;
    for (std::int64_t token = first; token < end; ++token) {
      count += chosen[token * shape.experts + expert] != 0 ? 1 : 0;
    }
    before[blockIdx.x * shape.experts + expert] = count;
  }
}

// The sum of what the lanes up to this one have.
__device__ inline std::int32_t sum_up_to(std::int32_t value, int lane) {
#pragma unroll
  for (int distance = 1; distance < kWarp; distance *= 2) {
    const std::int32_t other = __shfl_sync(kAllLanes, value, (lane - distance) & (kWarp - 1));
    if (lane >= distance) value += other;
  }
  return value;
}

// One block, a warp for an expert: counts of tiles become what is before them, and behind the last
// tile stands where each expert's rows begin.
__global__ void begin_rows(RouterShape shape, std::int64_t tiles, std::int32_t* before) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  std::int32_t* begins = before + tiles * shape.experts;
  for (std::int64_t expert = threadIdx.x / kWarp; expert < shape.experts; expert += kScanWarps) {
    std::int32_t sum = 0;
    for (std::int64_t first = 0; first < tiles; first += kWarp) {
      const std::int64_t tile = first + lane;
      const std::int32_t count = tile < tiles ? before[tile * shape.experts + expert] : 0;
      const std::int32_t with_own = sum_up_to(count, lane);
      if (tile < tiles) before[tile * shape.experts + expert] = sum + with_own - count;
      sum += __shfl_sync(kAllLanes, with_own, kWarp - 1);
    }
    if (lane == 0) begins[expert] = sum;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  std::int32_t row = 0;
  for (std::int64_t expert = 0; expert < shape.experts; ++expert) {
    const auto count =
        shape.capacity > 0 ? static_cast<std::int32_t>(shape.capacity) : begins[expert];
    begins[expert] = row;
    row += count;
  }
}

// Calls body(token, expert, row) for every token of this block's tile; row is below 0 where the
// token has none.
template <typename Body>
__device__ inline void for_rows_of_tile(const RouterShape& shape, const std::int8_t* chosen,
                                        const std::int32_t* before, std::int64_t tiles,
                                        const Body& body) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kTile;
  const std::int64_t end = first + kTile < shape.tokens ? first + kTile : shape.tokens;
  for (std::int64_t expert = threadIdx.x; expert < shape.experts; expert += blockDim.x) {
    const std::int64_t begin = before[tiles * shape.experts + expert];
    std::int64_t place = before[blockIdx.x * shape.experts + expert];
    for (std::int64_t token = first; token < end; ++token) {
      const bool is_chosen = chosen[token * shape.experts + expert] != 0;
      const bool fits = is_chosen && (shape.capacity == 0 || place < shape.capacity);
      body(token, expert, fits ? begin + place : -1);
      if (is_chosen) ++place;
    }
  }
}

__global__ void write_rows(RouterShape shape, const float* probabilities, const std::int8_t* chosen,
                           const std::int32_t* before, std::int64_t tiles,
                           std::int64_t* token_of_row, float* weights) {
  for_rows_of_tile(shape, chosen, before, tiles,
                   [&](std::int64_t token, std::int64_t expert, std::int64_t row) {
                     if (row < 0) return;
                     token_of_row[row] = token;
                     weights[row] = probabilities[token * shape.experts + expert];
                   });
}

__global__ void write_no_rows(std::int64_t rows, std::int64_t* token_of_row, float* weights) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; row < rows; row += step) {
    token_of_row[row] = -1;
    weights[row] = 0;
  }
}

// The gradients of a tile's probabilities stay in shared memory; then each warp has a token.
__global__ void tile_backward(RouterShape shape, const float* probabilities,
                              const std::int8_t* chosen, const std::int32_t* before,
                              std::int64_t tiles, const float* weight_gradient, float* out) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kTile;
  auto* gradient = reinterpret_cast<float*>(shared_memory());
  for_rows_of_tile(
      shape, chosen, before, tiles, [&](std::int64_t token, std::int64_t expert, std::int64_t row) {
        gradient[(token - first) * shape.experts + expert] = row < 0 ? 0 : weight_gradient[row];
      });
  __syncthreads();
  const std::int64_t end = first + kTile < shape.tokens ? first + kTile : shape.tokens;
  const std::int64_t lane = threadIdx.x % kWarp;
  for (std::int64_t token = first + threadIdx.x / kWarp; token < end; token += blockDim.x / kWarp) {
    const float* p = probabilities + token * shape.experts;
    float* g = gradient + (token - first) * shape.experts;
    float mean = 0;
    for (std::int64_t i = lane; i < shape.experts; i += kWarp) mean += p[i] * g[i];
    mean = reduce_warp<Plus>(mean);
    for (std::int64_t i = lane; i < shape.experts; i += kWarp) {
      out[token * shape.experts + i] = p[i] * (g[i] - mean);
    }
  }
}

struct TileGrid {
  dim3 blocks;
  unsigned threads;
};
TileGrid tile_grid(const RouterShape& shape) {
  const std::int64_t threads = (shape.experts + kWarp - 1) / kWarp * kWarp;
  return {dim3(static_cast<unsigned>(tiles_of(shape))),
          static_cast<unsigned>(threads < 256 ? threads : 256)};
}

// Writes into the workspace where rows lie.
void find_rows(const RouterShape& shape, const std::int8_t* chosen, std::int32_t* before,
               Stream stream) {
  STEPCAST_ASSERT(shape.tokens * shape.top_k < (std::int64_t{1} << 31) &&
                      shape.experts * shape.capacity < (std::int64_t{1} << 31),
                  "rows are counted in 32 bits");
  const TileGrid grid = tile_grid(shape);
  launch("count_in_tiles", count_in_tiles, grid.blocks, grid.threads, 0, stream, shape, chosen,
         before);
  launch("begin_rows", begin_rows, dim3(1), kScanWarps * kWarp, 0, stream, shape, tiles_of(shape),
         before);
}

}  // namespace

void route(const RouterShape& shape, const float* logits, const std::int64_t* choice,
           float* probabilities, std::int8_t* chosen, Stream stream, const float* bias) {
  STEPCAST_ASSERT(shape.top_k <= shape.experts, "a token goes to different experts");
  if (shape.tokens == 0) return;
  const auto shared = kWarps * static_cast<std::size_t>(shape.experts) * (sizeof(float) + 1);
  launch("route", route_tokens, dim3(token_blocks(shape)), kWarps * kWarp, shared, stream, shape,
         logits, choice, bias, probabilities, chosen);
}

std::int64_t router_workspace(const RouterShape& shape) {
  return (tiles_of(shape) + 1) * shape.experts;
}

void route_backward(const RouterShape& shape, const float* probabilities, const std::int8_t* chosen,
                    const float* weight_gradient, float* logits_gradient, std::int32_t* workspace,
                    Stream stream) {
  if (shape.tokens == 0) return;
  find_rows(shape, chosen, workspace, stream);
  const TileGrid grid = tile_grid(shape);
  const auto shared = static_cast<std::size_t>(kTile * shape.experts) * sizeof(float);
  launch("route_backward", tile_backward, grid.blocks, grid.threads, shared, stream, shape,
         probabilities, chosen, workspace, tiles_of(shape), weight_gradient, logits_gradient);
}

void choose_rows(const RouterShape& shape, const float* probabilities, const std::int8_t* chosen,
                 std::int64_t* token_of_row, float* weights, std::int32_t* workspace,
                 Stream stream) {
  const std::int64_t padded = shape.experts * shape.capacity;
  if (padded > 0) {
    const std::int64_t blocks = (padded + 255) / 256;
    launch("write_no_rows", write_no_rows,
           dim3(static_cast<unsigned>(blocks < 4096 ? blocks : 4096)), 256, 0, stream, padded,
           token_of_row, weights);
  }
  if (shape.tokens == 0) return;
  find_rows(shape, chosen, workspace, stream);
  const TileGrid grid = tile_grid(shape);
  launch("write_rows", write_rows, grid.blocks, grid.threads, 0, stream, shape, probabilities,
         chosen, workspace, tiles_of(shape), token_of_row, weights);
}

}  // namespace stepcast::cuda
