// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda_error.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

namespace stepcast::cuda {

void check(int code, const char* call) {
  const auto error = static_cast<cudaError_t>(code);
  if (error == cudaSuccess) return;
  cudaGetLastError();  // else the next call would report it again
  const std::string what = fmt::format("{}: {}", call, cudaGetErrorString(error));
  if (error == cudaErrorMemoryAllocation) throw OutOfDeviceMemory(what);
  throw CudaError(what);
}

std::optional<std::string> why_no_gpu() {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0) {
    return "no GPU: this machine has no NVIDIA driver";
  }
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess) return fmt::format("no GPU: {}", cudaGetErrorString(error));
  if (devices == 0) return "no GPU: the driver sees none";
  return std::nullopt;
}

}  // namespace stepcast::cuda
