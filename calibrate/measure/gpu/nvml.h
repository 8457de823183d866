// SPDX-License-Identifier: Apache-2.0
// The state of a GPU as its driver's management library tells it, loaded at run time: a machine
// without a driver, or without that library, has none. Interface: NVIDIA, "NVML API Reference".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "calibrate/protocol/gpu_condition.h"
#include "core/shared_library.h"

namespace stepcast {

class Nvml {
 public:
  explicit Nvml(const std::string& pci_bus_id);  // of the GPU, as CUDA names it
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  GpuCondition condition() const;  // now
  bool is_throttled() const { return is_protecting(condition()); }
  // How much of the device's memory all processes use; nothing where it does not tell.
  std::optional<std::int64_t> used_bytes() const;
  // "driver", "sm_clock", "sm_clock_max", "memory_clock", "power", "power_cap", "temperature";
  // those that it tells.
  std::map<std::string, std::string> facts() const;

 private:
  template <typename Function>
  Function find(const char* name) const;
  // Which clock or thermometer is meant by `of`.
  std::optional<unsigned> value_of(const char* function, std::optional<int> of) const;
  std::string reading(const char* function, std::optional<int> of, double unit,
                      const char* suffix) const;

  SharedLibrary library_;
  void* device_ = nullptr;  // null: nothing is known
};

}  // namespace stepcast
