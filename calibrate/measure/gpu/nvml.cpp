// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/gpu/nvml.h"

#include <fmt/format.h>

#include <array>

namespace stepcast {
namespace {

constexpr int kSuccess = 0;
constexpr int kSmClock = 1, kMemoryClock = 2;
constexpr int kOnTheChip = 0;  // of its thermometers
// Bits of nvmlClocksThrottleReasons.
struct Reason {
  unsigned long long bit;
  const char* name;
};
constexpr Reason kReasons[] = {{0x4, "power_cap"},
                               {0x8, "hardware_slowdown"},
                               {0x20, "software_thermal"},
                               {0x40, "hardware_thermal"},
                               {0x80, "power_brake"}};

}  // namespace

template <typename Function>
Function Nvml::find(const char* name) const {
  Function found = nullptr;
  library_.look_for(found, name);
  return found;
}

Nvml::Nvml(const std::string& pci_bus_id) : library_("NVML", "libnvidia-ml.so.1", "") {
  const auto init = find<int (*)()>("nvmlInit_v2");
  const auto by_bus = find<int (*)(const char*, void**)>("nvmlDeviceGetHandleByPciBusId_v2");
  if (init == nullptr || by_bus == nullptr || init() != kSuccess) return;
  if (by_bus(pci_bus_id.c_str(), &device_) != kSuccess) device_ = nullptr;
}

Nvml::~Nvml() {
  if (const auto shutdown = find<int (*)()>("nvmlShutdown"); shutdown != nullptr) shutdown();
}

GpuCondition Nvml::condition() const {
  GpuCondition out;
  if (device_ == nullptr) return out;
  out.sm_clock_mhz = value_of("nvmlDeviceGetClockInfo", kSmClock).value_or(0);
  out.power_w = 1e-3 * value_of("nvmlDeviceGetPowerUsage", {}).value_or(0);
  const auto reasons =
      find<int (*)(void*, unsigned long long*)>("nvmlDeviceGetCurrentClocksThrottleReasons");
  unsigned long long bits = 0;
  if (reasons == nullptr || reasons(device_, &bits) != kSuccess) return out;
  for (const Reason& reason : kReasons) {
    if ((bits & reason.bit) != 0) out.held_by.insert(reason.name);
  }
  return out;
}

std::optional<std::int64_t> Nvml::used_bytes() const {
  struct Memory {  // nvmlMemory_t
    unsigned long long total, free, used;
  };
  if (device_ == nullptr) return std::nullopt;
  const auto read = find<int (*)(void*, Memory*)>("nvmlDeviceGetMemoryInfo");
  Memory memory{};
  if (read == nullptr || read(device_, &memory) != kSuccess) return std::nullopt;
  return static_cast<std::int64_t>(memory.used);
}

std::optional<unsigned> Nvml::value_of(const char* function, std::optional<int> of) const {
  unsigned value = 0;
  int result = -1;
  if (of) {
    const auto read = find<int (*)(void*, int, unsigned*)>(function);
    if (read != nullptr) result = read(device_, *of, &value);
  } else {
    const auto read = find<int (*)(void*, unsigned*)>(function);
    if (read != nullptr) result = read(device_, &value);
  }
  return result == kSuccess ? std::optional(value) : std::nullopt;
}

// Returns an empty text if the driver tells nothing.
std::string Nvml::reading(const char* function, std::optional<int> of, double unit,
                          const char* suffix) const {
  const auto value = value_of(function, of);
  return value ? fmt::format("{:g} {}", *value * unit, suffix) : "";
}

std::map<std::string, std::string> Nvml::facts() const {
  std::map<std::string, std::string> out;
  if (device_ == nullptr) return out;
  out["sm_clock"] = reading("nvmlDeviceGetClockInfo", kSmClock, 1, "MHz");
  out["sm_clock_max"] = reading("nvmlDeviceGetMaxClockInfo", kSmClock, 1, "MHz");
  out["memory_clock"] = reading("nvmlDeviceGetClockInfo", kMemoryClock, 1, "MHz");
  out["power"] = reading("nvmlDeviceGetPowerUsage", {}, 1e-3, "W");
  out["power_cap"] = reading("nvmlDeviceGetEnforcedPowerLimit", {}, 1e-3, "W");
  out["temperature"] = reading("nvmlDeviceGetTemperature", kOnTheChip, 1, "C");
  std::array<char, 96> version{};
  const auto driver = find<int (*)(char*, unsigned)>("nvmlSystemGetDriverVersion");
  if (driver != nullptr && driver(version.data(), version.size()) == kSuccess) {
    out["driver"] = version.data();
  }
  std::erase_if(out, [](const auto& fact) { return fact.second.empty(); });
  return out;
}

}  // namespace stepcast
