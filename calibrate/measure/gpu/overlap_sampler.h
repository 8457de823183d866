// SPDX-License-Identifier: Apache-2.0
// Measures a large product beside copies and beside a collective: how much they slow each other,
// and how fast copies are alone.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>

#include "calibrate/gpu_run.h"
#include "calibrate/measure/gpu/device_collectives.h"
#include "calibrate/measure/gpu/gpu_call.h"
#include "calibrate/protocol/side_by_side.h"

namespace stepcast {

struct CopySizes {                              // bytes
  std::size_t host = std::size_t{64} << 20;     // a millisecond over PCIe
  std::size_t device = std::size_t{512} << 20;  // beyond any second-level cache
};

class OverlapSampler {
 public:
  // `product` needs all SMs; a fifth of a millisecond is long enough. Throws CudaError.
  explicit OverlapSampler(GpuCall product, const CopySizes& sizes = {});
  ~OverlapSampler();
  OverlapSampler(const OverlapSampler&) = delete;
  OverlapSampler& operator=(const OverlapSampler&) = delete;

  // One process alone calls this. Copies go through pinned memory. Throws CudaError.
  GpuRun::Copies copies();
  // Members of the meeting of `collectives` call this.
  GpuRun::Beside collective(DeviceCollectives& collectives, std::size_t ranks, ByteCount bytes);

 private:
  // `queue` one call of the second kind on `stream`.
  BothTimes run(std::int64_t first, std::int64_t second, cudaStream_t stream,
                const std::function<void()>& queue);
  GpuRun::Beside copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);

  const GpuCall product_;
  const CopySizes sizes_;
  cudaStream_t stream_ = nullptr, copy_stream_ = nullptr;
  cudaEvent_t first_begin_ = nullptr, first_end_ = nullptr;
  cudaEvent_t second_begin_ = nullptr, second_end_ = nullptr;
};

}  // namespace stepcast
