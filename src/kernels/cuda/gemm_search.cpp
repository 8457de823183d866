// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm_search.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <limits>

#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/noise.h"
#include "kernels/cuda/stream_timer.h"

namespace stepcast::cuda {
namespace {

constexpr int kMostSets = 64;  // small products stay in the cache, as they do in a step
constexpr int kProducts = 4;   // timed together

std::int64_t bytes_of(cudaDataType_t type) {
  if (type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2) return 1;
  return type == CUDA_R_32F ? 4 : 2;
}

// Counts from the first element of the first matrix of a batch to behind the last of the last one.
std::int64_t extent(const ColumnMajorMatrix& matrix, std::int64_t batch, std::int64_t step) {
  return (matrix.columns - 1) * matrix.leading + matrix.rows + (batch - 1) * step;
}

std::int64_t second_level_cache_bytes() {
  int device = 0, bytes = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, device), "cudaDeviceGetAttribute");
  return bytes;
}

void fill(cudaDataType_t type, void* data, std::int64_t count, Stream stream) {
  switch (type) {
    case CUDA_R_16BF:
      return fill_with_noise(static_cast<Bf16*>(data), count, 1, stream);
    case CUDA_R_8F_E4M3:
    case CUDA_R_8F_E5M2:  // what is a number in the one format is one in the other
      return fill_with_noise(static_cast<Fp8*>(data), count, 1, stream);
    case CUDA_R_16F:
      return fill_with_noise(static_cast<Fp16*>(data), count, 1, stream);
    default:
      return fill_with_noise(static_cast<float*>(data), count, 1, stream);
  }
}

// Operands like those of the problem, with exactly their alignment.
class Sets {
 public:
  Sets(const BlasProblem& problem, Stream stream) {
    const ColumnMajorGemm& shape = problem.shape;
    const Part parts[] = {
        {problem.first_in, extent(shape.first, problem.batch, problem.first_step),
         problem.first_alignment},
        {problem.second_in, extent(shape.second, problem.batch, problem.second_step),
         problem.second_alignment},
        {problem.out, extent(shape.out, problem.batch, problem.out_step), problem.out_alignment},
        {problem.out, problem.bias ? shape.m : 0, 256}};
    std::int64_t bytes = 0;
    for (const Part& part : parts) bytes += part.count * bytes_of(part.type);
    const std::int64_t enough = 2 * second_level_cache_bytes() / bytes + 1;
    for (std::int64_t i = 0; i < std::min<std::int64_t>(enough, kMostSets); ++i) {
      void* of_set[4];
      for (std::size_t p = 0; p < 4; ++p) of_set[p] = make(parts[p], stream);
      sets_.push_back({of_set[0], of_set[1], of_set[2], of_set[3]});
    }
  }
  const BlasOperands& next() { return sets_[at_++ % sets_.size()]; }

 private:
  struct Part {
    cudaDataType_t type;
    std::int64_t count;
    std::uint32_t alignment;  // allocations have 256 bytes or more
  };
  void* make(const Part& part, Stream stream) {
    const std::uint32_t offset = part.alignment < 256 ? part.alignment : 0;
    memory_.emplace_back(static_cast<std::size_t>(part.count * bytes_of(part.type)) + offset);
    void* data = static_cast<std::byte*>(memory_.back().data()) + offset;
    fill(part.type, data, part.count, stream);
    return data;
  }

  std::vector<DeviceMemory> memory_;
  std::vector<BlasOperands> sets_;
  std::size_t at_ = 0;
};

// The library proposes algorithms that then refuse a problem: they take infinitely long.
float time_of(const BlasContext& context, Sets& sets, BlasProduct& product,
              const cublasLtMatmulAlgo_t& algorithm) {
  try {
    return median_time(context.stream, kProducts,
                       [&] { product.run(context, sets.next(), algorithm); });
  } catch (const OutOfDeviceMemory&) {
    throw;
  } catch (const CudaError&) {
    return std::numeric_limits<float>::infinity();
  }
}

}  // namespace

cublasLtMatmulAlgo_t fastest_algorithm(const BlasContext& context, const BlasProblem& problem,
                                       int candidates) {
  BlasProduct product(problem);
  const auto algorithms = product.algorithms(context, std::max(candidates, 1));
  if (algorithms.size() == 1 || candidates <= 1) return algorithms.front();
  try {
    Sets sets(problem, context.stream);
    std::size_t best = 0;
    float least = std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i < algorithms.size(); ++i) {
      const float time = time_of(context, sets, product, algorithms[i]);
      if (time >= least) continue;
      best = i;
      least = time;
    }
    return algorithms[best];
  } catch (const OutOfDeviceMemory&) {  // the search's own matrices do not fit
    return algorithms.front();
  }
}

}  // namespace stepcast::cuda
