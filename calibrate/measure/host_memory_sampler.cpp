// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/host_memory_sampler.h"

#include <sched.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "cluster/this_machine.h"
#include "core/statistics.h"
#include "cost/profile_forms.h"
#include "kernels/cpu/elementwise.h"

namespace stepcast {
namespace {

using Clock = std::chrono::steady_clock;

// Arrays that no cache holds, of one core or of all together, but an eighth of the memory at most.
constexpr std::int64_t kElementsOfOne = 16 << 20, kElementsOfAll = 32 << 20;
constexpr std::int64_t kLeastElements = 1 << 20, kArrays = 4;
constexpr int kSamples = 7;  // behind one that touches the memory for the first time
constexpr double kBytes = 7 * sizeof(float);  // gradient, and weight and moments there and back

// A launcher may have bound this process to one core.
std::vector<int> all_cores() {
  cpu_set_t before, all;
  CPU_ZERO(&before);
  CPU_ZERO(&all);
  sched_getaffinity(0, sizeof(before), &before);
  for (int core = 0; core < CPU_SETSIZE; ++core) CPU_SET(core, &all);
  sched_setaffinity(0, sizeof(all), &all);  // as far as the machine lets this process
  sched_getaffinity(0, sizeof(all), &all);
  sched_setaffinity(0, sizeof(before), &before);
  std::vector<int> out;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &all)) out.push_back(core);
  }
  if (out.empty()) out.push_back(0);
  return out;
}

void bind_to(int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  sched_setaffinity(0, sizeof(one), &one);
}

std::int64_t elements_of_each(std::int64_t wanted, std::size_t cores) {
  const auto most = this_machine().memory / 8 / kArrays / static_cast<ByteCount>(sizeof(float));
  const auto each = std::min(wanted, std::max(most, kLeastElements));
  return std::max(each / static_cast<std::int64_t>(cores), kLeastElements);
}

// The states of one core's part.
struct States {
  explicit States(std::int64_t elements)
      : gradient(static_cast<std::size_t>(elements), 1e-2F),
        weight(gradient.size(), 1),
        moment1(gradient.size(), 0),
        moment2(gradient.size(), 0) {}
  void update(std::int64_t step) {
    cpu::adamw<float>(AdamW{}, step, gradient.data(), weight.data(), moment1.data(), moment2.data(),
                      static_cast<std::int64_t>(gradient.size()), 1);
  }
  std::vector<float> gradient, weight, moment1, moment2;
};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// One thread for each core; the median time in which all have gone through their parts.
BytesPerSecond update_rate(const std::vector<int>& cores, std::int64_t wanted) {
  const std::int64_t elements = elements_of_each(wanted, cores.size());
  std::barrier all(static_cast<std::ptrdiff_t>(cores.size()));
  std::vector<double> seconds;
  const auto work = [&](std::size_t own) {
    bind_to(cores[own]);
    States states(elements);
    for (int sample = 0; sample <= kSamples; ++sample) {
      all.arrive_and_wait();
      const Clock::time_point begin = Clock::now();
      states.update(1 + sample);
      all.arrive_and_wait();
      if (own == 0 && sample > 0) seconds.push_back(seconds_since(begin));
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t own = 0; own < cores.size(); ++own) threads.emplace_back(work, own);
  for (std::thread& thread : threads) thread.join();
  const auto bytes = kBytes * static_cast<double>(elements) * static_cast<double>(cores.size());
  return BytesPerSecond(rounded(bytes / median(seconds)));
}

BytesPerSecond copy_rate(int core) {
  std::vector<double> seconds;
  const std::int64_t elements = elements_of_each(kElementsOfOne, 1);
  std::thread([&] {
    bind_to(core);
    const std::vector<float> from(static_cast<std::size_t>(elements), 1);
    std::vector<float> to(from.size());
    for (int sample = 0; sample <= kSamples; ++sample) {
      const Clock::time_point begin = Clock::now();
      std::memcpy(to.data(), from.data(), from.size() * sizeof(float));
      if (sample > 0) seconds.push_back(seconds_since(begin));
    }
  }).join();
  const auto bytes = static_cast<double>(sizeof(float)) * static_cast<double>(elements);
  return BytesPerSecond(rounded(bytes / median(seconds)));
}

}  // namespace

HostMemory measure_host_memory(const std::function<void()>& alive) {
  const std::vector<int> cores = all_cores();
  HostMemory out;
  out.cores = static_cast<std::int64_t>(cores.size());
  out.update_one_core = update_rate({cores.front()}, kElementsOfOne);
  alive();
  out.copy_one_core = copy_rate(cores.front());
  alive();
  out.update = out.cores > 1 ? update_rate(cores, kElementsOfAll) : out.update_one_core;
  alive();
  return out;
}

}  // namespace stepcast
