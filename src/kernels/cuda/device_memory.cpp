// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/device_memory.h"

#include <cuda_runtime_api.h>

#include "kernels/cuda/cuda_error.h"

namespace stepcast::cuda {

DeviceMemory::DeviceMemory(std::size_t bytes) { check(cudaMalloc(&data_, bytes), "cudaMalloc"); }

DeviceMemory::~DeviceMemory() { cudaFree(data_); }

void copy_to_device(void* device, const void* host, std::size_t bytes, Stream stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, queue), "cudaMemcpyAsync");
  check(cudaStreamSynchronize(queue), "cudaStreamSynchronize");
}

void copy_to_host(void* host, const void* device, std::size_t bytes, Stream stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, queue), "cudaMemcpyAsync");
  check(cudaStreamSynchronize(queue), "cudaStreamSynchronize");
}

}  // namespace stepcast::cuda
