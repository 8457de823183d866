// SPDX-License-Identifier: Apache-2.0
// The emulated device's memory is the host's, and it is always there.
#include "kernels/cuda/device_memory.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "kernels/cuda/cuda_error.h"

namespace stepcast::cuda {

void check(int code, const char* call) {
  if (code != 0) throw CudaError(call);
}
std::optional<std::string> why_no_gpu() { return std::nullopt; }

// As cudaMalloc aligns, and poisoned.
DeviceMemory::DeviceMemory(std::size_t bytes) {
  if (posix_memalign(&data_, 256, bytes == 0 ? 1 : bytes) != 0) throw std::bad_alloc();
  std::memset(data_, 0xff, bytes);
}
DeviceMemory::~DeviceMemory() { std::free(data_); }

void copy_to_device(void* device, const void* host, std::size_t bytes, Stream) {
  if (bytes > 0) std::memcpy(device, host, bytes);
}
void copy_to_host(void* host, const void* device, std::size_t bytes, Stream) {
  if (bytes > 0) std::memcpy(host, device, bytes);
}

}  // namespace stepcast::cuda
