// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/machine_facts.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>
#include <thread>

#include "calibrate/protocol/system_file.h"
#include "core/json_tree.h"
#include "core/utc_date.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

constexpr double kGiB = 1073741824.0;

std::string processor_name(const std::string& root, const std::string& architecture) {
  const std::string name = field_of(root + "/proc/cpuinfo", "model name");
  if (!name.empty()) return name;
  const std::string part = field_of(root + "/proc/cpuinfo", "CPU part");  // ARM gives numbers
  if (part.empty()) return architecture;
  return fmt::format("{} implementer {} part {}", architecture,
                     field_of(root + "/proc/cpuinfo", "CPU implementer"), part);
}

// The smallest value of `limit` over the process's control group and those above it (version 2:
// kernel.org, admin-guide/cgroup-v2.rst). The function turns a file's line into a value.
template <class Parse>
std::optional<double> control_group_limit(const std::string& root, const char* file, Parse parse) {
  const std::string line = first_line(root + "/proc/self/cgroup");
  std::optional<double> out;
  if (!line.starts_with("0::/")) return out;
  for (fs::path group = line.substr(4);; group = group.parent_path()) {
    const fs::path text = fs::path(root + "/sys/fs/cgroup") / group / file;
    const std::optional<double> limit = parse(first_line(text));
    if (limit && (!out || *limit < *out)) out = limit;
    if (group.empty()) return out;
  }
}

std::optional<double> leading_number(const std::string& text) {
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  return parsed.ec == std::errc() ? std::optional(value) : std::nullopt;
}

// cpu.max is "quota period" in microseconds, or "max period".
std::optional<double> processors_of_quota(const std::string& line) {
  const auto quota = leading_number(line);
  const auto blank = line.find(' ');
  if (!quota || blank == std::string::npos) return std::nullopt;
  const auto period = leading_number(line.substr(blank + 1));
  if (!period || *period <= 0) return std::nullopt;
  return *quota / *period;
}

int usable_cores(const std::string& root) {
  int cores = static_cast<int>(std::thread::hardware_concurrency());
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0) cores = CPU_COUNT(&allowed);
  if (const auto quota = control_group_limit(root, "cpu.max", processors_of_quota)) {
    cores = std::min(cores, static_cast<int>(std::ceil(*quota)));
  }
  return std::max(1, cores);
}

ByteCount memory_of(const std::string& root) {
  const auto kib = leading_number(field_of(root + "/proc/meminfo", "MemTotal"));
  double bytes = kib.value_or(0) * 1024;
  if (const auto limit = control_group_limit(root, "memory.max", leading_number)) {
    bytes = std::min(bytes, *limit);
  }
  return static_cast<ByteCount>(bytes);
}

int socket_count(const std::string& root) {
  std::set<std::string> packages;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(root + "/sys/devices/system/cpu", none)) {
    const std::string id = first_line(entry.path() / "topology/physical_package_id");
    if (!id.empty()) packages.insert(id);
  }
  return static_cast<int>(packages.size());
}

// "0-3,8" is five processors.
int processors_in(const std::string& list) {
  int out = 0;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string range = list.substr(begin, end - begin);
    const auto dash = range.find('-');
    const double first = leading_number(range).value_or(0);
    const double last =
        dash == std::string::npos ? first : leading_number(range.substr(dash + 1)).value_or(first);
    out += static_cast<int>(last - first) + 1;
    begin = end + 1;
  }
  return out;
}

// "32768K" as the kernel writes it.
std::string size_text(const std::string& kernel_text) {
  const double kib = leading_number(kernel_text).value_or(0);
  return kib >= 1024 ? fmt::format("{:g} MiB", kib / 1024) : fmt::format("{:g} KiB", kib);
}

std::vector<std::string> caches_of(const std::string& root) {
  std::vector<std::string> out;
  const std::string folder = root + "/sys/devices/system/cpu/cpu0/cache/index";
  for (int index = 0; fs::exists(folder + std::to_string(index)); ++index) {
    const std::string cache = folder + std::to_string(index) + "/";
    const std::string type = first_line(cache + "type");
    std::string text = "L" + first_line(cache + "level");
    if (type == "Data") text += "d";
    if (type == "Instruction") text += "i";
    text += " " + size_text(first_line(cache + "size"));
    const int sharers = processors_in(first_line(cache + "shared_cpu_list"));
    if (sharers > 1) text += fmt::format(" shared by {}", sharers);
    out.push_back(text);
  }
  return out;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string compiler_name() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("gcc {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

}  // namespace

MachineDescription read_machine_facts(const MachineFactsInput& input) {
  MachineDescription out;
  utsname system{};
  ::uname(&system);
  out.processor = processor_name(input.root, system.machine);
  out.cores = usable_cores(input.root);
  out.sockets = socket_count(input.root);
  out.caches = caches_of(input.root);
  out.memory_bytes = memory_of(input.root);
  out.hostname = host_name();
  out.system = fmt::format("{} {} {}", system.sysname, system.release, system.machine);
  out.governor = first_line(input.root + "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  out.compiler = compiler_name();
  out.blas = input.blas;
  out.date = input.date.empty() ? utc_date(std::time(nullptr)) : input.date;
  return out;
}

Json to_json(const MachineDescription& facts) {
  Json out;
  const auto add_text = [&](const char* key, const std::string& text) {
    if (!text.empty()) out[key] = text;
  };
  add_text("processor", facts.processor);
  out["cores"] = facts.cores;
  if (facts.sockets > 0) out["sockets"] = facts.sockets;
  if (!facts.caches.empty()) out["caches"] = facts.caches;
  if (facts.memory_bytes > 0) {
    out["memory"] = fmt::format("{:.1f} GiB", static_cast<double>(facts.memory_bytes) / kGiB);
  }
  add_text("hostname", facts.hostname);
  add_text("system", facts.system);
  add_text("governor", facts.governor);
  add_text("compiler", facts.compiler);
  add_text("blas", facts.blas);
  add_text("date", facts.date);
  return out;
}

Json machine_identity(const MachineDescription& facts) {
  Json out = to_json(facts);
  out.erase("system");
  out.erase("date");
  return out;
}

}  // namespace stepcast
