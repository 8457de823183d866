// SPDX-License-Identifier: Apache-2.0
// The GPU that this process computes on: the first that CUDA_VISIBLE_DEVICES leaves it.
#pragma once

#include <cstdint>
#include <string>

#include "core/json_fwd.h"

namespace stepcast {

struct ThisGpu {
  std::string name;        // "NVIDIA H200"
  std::string pci_bus_id;  // "0000:1B:00.0"
  int sm_count = 0;
  std::int64_t cache_bytes = 0;   // of the second level
  std::int64_t memory_bytes = 0;  // of the device
  int compute_capability = 0;     // 90
  int runtime = 0, driver = 0;    // 13000: what this was built with, what the driver knows
};

ThisGpu this_gpu();  // throws CudaError: no GPU, no driver

// Profiles say this under "machine"; it is the part of it that makes durations comparable.
Json to_json(const ThisGpu& gpu);

}  // namespace stepcast
