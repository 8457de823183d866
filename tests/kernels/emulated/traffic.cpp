// SPDX-License-Identifier: Apache-2.0
#include "kernels/emulated/traffic.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <mutex>
#include <utility>

namespace stepcast::emulated {
namespace {

struct Sector {
  std::uint32_t arrived = 0;  // how many sectors had come when it was last touched; 0: never
  bool written = false;       // since it came
};

// Bytes by address. Allocations come from any thread; kernels run one at a time.
std::mutex allocations_mutex;
std::map<std::uintptr_t, std::size_t> allocations;

constexpr auto kSector = static_cast<std::size_t>(kSectorBytes);
constexpr std::size_t sectors_of(std::size_t bytes) { return (bytes + kSector - 1) / kSector; }

// An allocation while a kernel runs.
struct Range {
  std::uintptr_t begin, end;
  Sector* sectors;
};

struct Counting {
  std::uint32_t cache_sectors = 0;
  std::vector<KernelTraffic> kernels;
  std::uint32_t arrivals = 0;
  std::vector<Range> ranges;  // in the order of their addresses
  std::vector<Sector> sectors;
  const Range* latest = nullptr;  // of the access before, which the next is mostly in
};
Counting* counting = nullptr;
thread_local bool in_kernel = false;  // fibers stay on the thread that launches

void touch_sector(Sector& sector, bool writes) {
  KernelTraffic& kernel = counting->kernels.back();
  const bool cached =
      sector.arrived > 0 && counting->arrivals - sector.arrived < counting->cache_sectors;
  if (!cached) {
    ++counting->arrivals;
    sector.written = false;
    if (!writes) kernel.read_bytes += kSectorBytes;
  }
  sector.arrived = counting->arrivals;
  if (writes && !sector.written) {
    sector.written = true;
    kernel.written_bytes += kSectorBytes;
  }
}

const Range* range_of(std::uintptr_t at) {
  const Range* latest = counting->latest;
  if (at >= latest->begin && at < latest->end) return latest;
  const auto behind = std::upper_bound(
      counting->ranges.begin(), counting->ranges.end(), at,
      [](std::uintptr_t address, const Range& range) { return address < range.begin; });
  if (behind == counting->ranges.begin() || at >= (behind - 1)->end) return nullptr;
  return counting->latest = &*(behind - 1);
}

}  // namespace

TrafficCounter::TrafficCounter(std::int64_t cache_bytes) {
  assert(counting == nullptr);
  counting = new Counting;
  counting->cache_sectors = static_cast<std::uint32_t>(cache_bytes / kSectorBytes);
}
TrafficCounter::~TrafficCounter() { delete std::exchange(counting, nullptr); }

std::vector<KernelTraffic> TrafficCounter::take() { return std::exchange(counting->kernels, {}); }

void device_memory_begins(void* data, std::size_t bytes) {
  const std::lock_guard lock(allocations_mutex);
  allocations.insert_or_assign(reinterpret_cast<std::uintptr_t>(data), bytes);
}
void device_memory_ends(void* data) {
  const std::lock_guard lock(allocations_mutex);
  allocations.erase(reinterpret_cast<std::uintptr_t>(data));
}

KernelRun::KernelRun(const char* name) {
  if (counting == nullptr) return;
  const std::lock_guard lock(allocations_mutex);
  if (allocations.empty()) return;
  counting->kernels.push_back({name});
  counting->arrivals = 0;
  std::size_t sectors = 0;
  for (const auto& [begin, bytes] : allocations) sectors += sectors_of(bytes);
  counting->sectors.assign(sectors, {});
  counting->ranges.clear();
  Sector* next = counting->sectors.data();
  for (const auto& [begin, bytes] : allocations) {
    counting->ranges.push_back({begin, begin + bytes, next});
    next += sectors_of(bytes);
  }
  counting->latest = counting->ranges.data();
  in_kernel = true;
}
KernelRun::~KernelRun() { in_kernel = false; }

void touch(const void* data, std::size_t bytes, bool writes) {
  if (!in_kernel) return;
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  const Range* range = range_of(at);
  if (range == nullptr) return;
  counting->kernels.back().asked_bytes += static_cast<std::int64_t>(bytes);
  const std::uintptr_t end = std::min(at + bytes, range->end);
  for (std::size_t i = (at - range->begin) / kSector; range->begin + i * kSector < end; ++i) {
    touch_sector(range->sectors[i], writes);
  }
}

}  // namespace stepcast::emulated
