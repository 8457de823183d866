// SPDX-License-Identifier: Apache-2.0
// Turns the parts of the cross-entropy into its value, one number for each row.
#include "kernels/cuda/cross_entropy.h"
#include "kernels/cuda/eight.cuh"
#include "kernels/cuda/reduce.cuh"

namespace stepcast::cuda {
namespace {

__global__ void rescale_all(const float* local_largest, const float* largest, float* sum,
                            std::int64_t rows) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < rows;
       i += step) {
    sum[i] *= expf(local_largest[i] - largest[i]);
  }
}

// One block, so that the order of additions is fixed.
__global__ void add_rows(const float* largest, const float* sum, const float* target,
                         std::int64_t rows, double* total) {
  __shared__ double scratch[kWarp];
  double own = 0;
  for (std::int64_t i = threadIdx.x; i < rows; i += blockDim.x) {
    own += static_cast<double>(logf(sum[i])) + static_cast<double>(largest[i]) -
           static_cast<double>(target[i]);
  }
  own = reduce_block<Plus>(own, 0.0, scratch);
  if (threadIdx.x == 0) *total += own;
}

}  // namespace

void rescale_sums(const float* local_largest, const float* largest, float* sum, std::int64_t rows,
                  Stream stream) {
  if (rows == 0) return;
  launch("rescale_sums", rescale_all, dim3(flat_blocks(rows)), kFlatThreads, 0, stream,
         local_largest, largest, sum, rows);
}

void add_loss(const float* largest, const float* sum, const float* target, std::int64_t rows,
              double* total, Stream stream) {
  if (rows == 0) return;
  launch("add_loss", add_rows, dim3(1), 1024, 0, stream, largest, sum, target, rows, total);
}

}  // namespace stepcast::cuda
