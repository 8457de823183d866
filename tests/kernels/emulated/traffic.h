// SPDX-License-Identifier: Apache-2.0
// Counts what kernels of the emulated device read from its memory and write to it. They are
// compiled with -fsanitize=thread, which calls us at every access (kernels/traffic/hooks.cpp).
//
// Memory moves in sectors of 32 bytes. A kernel begins with an empty cache and pays for a sector
// when it first touches it, and again when so many other sectors came in between that the cache has
// lost it. So a row that a block reads twice counts once, and an array that is walked twice counts
// twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace stepcast::emulated {

inline constexpr std::int64_t kSectorBytes = 32;

struct KernelTraffic {
  std::string name;  // of the launch
  std::int64_t read_bytes = 0, written_bytes = 0;
  std::int64_t asked_bytes = 0;  // by all threads together, whatever came from the cache

  std::int64_t bytes() const { return read_bytes + written_bytes; }
};

// Counts while it lives. One at a time.
class TrafficCounter {
 public:
  explicit TrafficCounter(std::int64_t cache_bytes);
  ~TrafficCounter();
  TrafficCounter(const TrafficCounter&) = delete;
  TrafficCounter& operator=(const TrafficCounter&) = delete;

  std::vector<KernelTraffic> take();  // of the launches since the last call
};

// The emulator says with these where device memory is, and what runs.
void device_memory_begins(void* data, std::size_t bytes);
void device_memory_ends(void* data);
class KernelRun {
 public:
  explicit KernelRun(const char* name);
  ~KernelRun();
  KernelRun(const KernelRun&) = delete;
  KernelRun& operator=(const KernelRun&) = delete;
};
// Does nothing outside of counted kernels and of device memory.
void touch(const void* data, std::size_t bytes, bool writes);

}  // namespace stepcast::emulated
