// SPDX-License-Identifier: Apache-2.0
#include "launch/host_facts.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <string>

namespace stepcast {

int usable_cores() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (::sched_getaffinity(0, sizeof usable, &usable) != 0) return 1;
  std::set<std::string> cores;  // each by the list of its threads
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable)) continue;
    std::ifstream file(
        fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
    std::string threads;
    if (!std::getline(file, threads)) threads = std::to_string(cpu);
    cores.insert(threads);
  }
  return std::max(1, static_cast<int>(cores.size()));
}

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::int64_t out_of_memory_kills() {
  std::ifstream file("/proc/vmstat");
  std::string key;
  for (std::int64_t value = 0; file >> key >> value;) {
    if (key == "oom_kill") return value;
  }
  return -1;
}

}  // namespace stepcast
