// SPDX-License-Identifier: Apache-2.0
// The state of a GPU as its driver's management library tells it, loaded at run time: a machine
// without a driver, or without that library, has none. Interface: NVIDIA, "NVML API Reference".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/shared_library.h"

namespace stepcast {

class Nvml {
 public:
  explicit Nvml(const std::string& pci_bus_id);  // of the GPU, as CUDA names it
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Clocks that the driver holds down now to protect the board: too hot, or power failing. The
  // power cap is no such reason: products run into it for as long as they last.
  bool is_throttled() const;
  // How much of the device's memory all processes use; nothing where it does not tell.
  std::optional<std::int64_t> used_bytes() const;
  // "driver", "sm_clock", "sm_clock_max", "memory_clock", "power", "power_cap", "temperature";
  // those that it tells.
  std::map<std::string, std::string> facts() const;

 private:
  template <typename Function>
  Function find(const char* name) const;
  std::string reading(const char* function, int of, bool has_of, double unit,
                      const char* suffix) const;

  SharedLibrary library_;
  void* device_ = nullptr;  // null: nothing is known
};

}  // namespace stepcast
