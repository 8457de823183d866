// SPDX-License-Identifier: Apache-2.0
#include "cluster/this_machine.h"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <utility>

#include "core/text_file.h"

namespace stepcast {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

// The value of the first line "key : value".
std::string value_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || trimmed(line.substr(0, colon)) != key) continue;
    return std::string(trimmed(line.substr(colon + 1)));
  }
  return "";
}

double number_of(const std::string& text) { return std::strtod(text.c_str(), nullptr); }

bool has_word(const std::string& list, std::string_view word) {
  std::istringstream words(list);
  return std::find(std::istream_iterator<std::string>(words), {}, word) !=
         std::istream_iterator<std::string>();
}

// "Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz"
double clock_in_name(const std::string& name) {
  const std::size_t at = name.rfind('@');
  if (at == std::string::npos || name.find("GHz", at) == std::string::npos) return 0;
  return 1e9 * number_of(name.substr(at + 1));
}

double clock_of(std::string_view cpuinfo, const std::string& name,
                std::string_view max_frequency_khz) {
  const double listed = 1e3 * number_of(std::string(trimmed(max_frequency_khz)));
  if (listed > 0) return listed;
  if (const double named = clock_in_name(name); named > 0) return named;
  const bool x86 = !value_of(cpuinfo, "flags").empty();
  if (x86) {
    const double counter = 1e6 * number_of(value_of(cpuinfo, "bogomips")) / 2;
    if (counter > 0) return counter;
  }
  return 1e6 * number_of(value_of(cpuinfo, "cpu MHz"));
}

std::int64_t usable_cores() {
#ifdef __linux__
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    return std::max<std::int64_t>(1, CPU_COUNT(&set));
  }
#endif
  // No Linux, or more processors than the set has room for.
  return std::max<std::int64_t>(1, sysconf(_SC_NPROCESSORS_ONLN));
}

}  // namespace

MachineFacts parse_machine(std::string_view cpuinfo, std::string_view meminfo,
                           std::string_view max_frequency_khz) {
  MachineFacts out;
  out.processor = value_of(cpuinfo, "model name");
  out.vendor = value_of(cpuinfo, "vendor_id");
  out.clock_hz = clock_of(cpuinfo, out.processor, max_frequency_khz);
  const std::string flags = value_of(cpuinfo, "flags");
  const std::string features = value_of(cpuinfo, "Features");  // 64-bit Arm
  out.vector_bits = has_word(flags, "avx512f") ? 512 : has_word(flags, "avx") ? 256 : 128;
  out.fused_multiply_add = has_word(flags, "fma") || has_word(features, "asimd");
  out.memory = static_cast<ByteCount>(1024 * number_of(value_of(meminfo, "MemTotal")));
  return out;
}

MachineFacts this_machine() {
  std::string unreadable;
  const auto text_of = [&](const char* path) {
    std::error_code none;
    if (!std::filesystem::exists(path, none)) return std::string();
    auto text = read_text_file(path);
    if (!text) unreadable = path;
    return std::move(text).value_or("");
  };
  MachineFacts out =
      parse_machine(text_of("/proc/cpuinfo"), text_of("/proc/meminfo"),
                    text_of("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"));
  out.unreadable = std::move(unreadable);
  out.cores = usable_cores();
  utsname system{};
  if (out.processor.empty() && uname(&system) == 0) out.processor = system.machine;
  return out;
}

}  // namespace stepcast
