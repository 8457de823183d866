// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/processor_watch.h"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <sstream>
#include <utility>

#include "calibrate/protocol/system_file.h"

namespace stepcast {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double own_cpu_s() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

}  // namespace

std::optional<ProcessorUse> parse_processor_use(const std::string& line, double ticks_per_s) {
  if (!line.starts_with("cpu ")) return std::nullopt;
  std::istringstream text(line.substr(3));
  // user, nice, system, idle, iowait, irq, softirq, steal. Guests' time is part of user and nice.
  std::array<double, 8> ticks{};
  for (double& one : ticks) {
    if (!(text >> one) || one < 0) return std::nullopt;
  }
  const auto [user, nice, system, idle, waiting, irq, softirq, stolen] = ticks;
  ProcessorUse out;
  out.busy_s = (user + nice + system + irq + softirq) / ticks_per_s;
  out.stolen_s = stolen / ticks_per_s;
  out.span_s = out.busy_s + out.stolen_s + (idle + waiting) / ticks_per_s;
  return out;
}

ProcessorWatch::ProcessorWatch(std::string stat_file)
    : stat_file_(std::move(stat_file)), start_(read()) {}

std::optional<ProcessorUse> ProcessorWatch::read() const {
  auto out =
      parse_processor_use(first_line(stat_file_), static_cast<double>(::sysconf(_SC_CLK_TCK)));
  if (out) out->own_s = own_cpu_s();
  return out;
}

std::optional<ProcessorUse> ProcessorWatch::so_far() const {
  const auto now = read();
  if (!now || !start_) return std::nullopt;
  return ProcessorUse{now->span_s - start_->span_s, now->busy_s - start_->busy_s,
                      now->stolen_s - start_->stolen_s, now->own_s - start_->own_s};
}

}  // namespace stepcast
