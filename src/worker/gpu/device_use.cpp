// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/device_use.h"

#include <cuda_runtime_api.h>

#include <array>

#include "calibrate/measure/gpu/nvml.h"
#include "kernels/cuda/cuda_error.h"

namespace stepcast {
namespace {

std::string bus_id_of(int device) {
  std::array<char, 32> bus{};
  cuda::check(cudaDeviceGetPCIBusId(bus.data(), bus.size(), device), "cudaDeviceGetPCIBusId");
  return bus.data();
}

}  // namespace

DeviceUse::DeviceUse() {
  if (cuda::why_no_gpu()) return;  // whoever needs one says so
  int count = 0;
  cuda::check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  for (int device = 0; device < count; ++device) {
    const std::string bus_id = bus_id_of(device);
    if (const auto used = Nvml(bus_id).used_bytes()) before_[bus_id] = *used;
  }
}

std::int64_t DeviceUse::bytes() const {
  int device = 0;
  cuda::check(cudaGetDevice(&device), "cudaGetDevice");
  const std::string bus_id = bus_id_of(device);
  if (const auto before = before_.find(bus_id); before != before_.end()) {
    if (const auto used = Nvml(bus_id).used_bytes()) return *used - before->second;
  }
  std::size_t free = 0, total = 0;
  cuda::check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return static_cast<std::int64_t>(total - free);
}

}  // namespace stepcast
