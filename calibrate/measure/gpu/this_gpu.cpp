// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/gpu/this_gpu.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <array>

#include "core/json_tree.h"
#include "kernels/cuda/cuda_error.h"

namespace stepcast {
namespace {

std::string version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

}  // namespace

ThisGpu this_gpu() {
  using cuda::check;
  if (const auto why = cuda::why_no_gpu()) throw cuda::CudaError(*why);
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  ThisGpu out;
  out.name = properties.name;
  out.sm_count = properties.multiProcessorCount;
  out.cache_bytes = properties.l2CacheSize;
  out.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  out.compute_capability = 10 * properties.major + properties.minor;
  std::array<char, 32> bus{};
  check(cudaDeviceGetPCIBusId(bus.data(), bus.size(), device), "cudaDeviceGetPCIBusId");
  out.pci_bus_id = bus.data();
  check(cudaRuntimeGetVersion(&out.runtime), "cudaRuntimeGetVersion");
  check(cudaDriverGetVersion(&out.driver), "cudaDriverGetVersion");
  return out;
}

Json to_json(const ThisGpu& gpu) {
  return {{"gpu", gpu.name},
          {"multiprocessors", std::to_string(gpu.sm_count)},
          {"l2", fmt::format("{} MiB", gpu.cache_bytes >> 20)},
          {"memory", fmt::format("{:.1f} GiB", static_cast<double>(gpu.memory_bytes) / (1 << 30))},
          {"compute_capability",
           fmt::format("{}.{}", gpu.compute_capability / 10, gpu.compute_capability % 10)},
          {"cuda", version(gpu.runtime)},
          {"cuda_of_driver", version(gpu.driver)}};
}

}  // namespace stepcast
