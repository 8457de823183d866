// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/disturbance.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <utility>

#include "calibrate/protocol/system_file.h"

namespace stepcast {
namespace {

// cpufreq counts in kHz.
std::optional<double> frequency(const std::string& file) {
  const auto khz = first_number(file);
  return khz ? std::optional(1e3 * static_cast<double>(*khz)) : std::nullopt;
}

double thread_cpu_s() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double frequency_ratio(const ProcessorState& before, const ProcessorState& after,
                       std::optional<double> base_hz) {
  if (!after.frequency_hz) return 1;
  if (base_hz) return *after.frequency_hz / *base_hz;
  if (!before.frequency_hz || before.processor != after.processor) return 1;
  return *after.frequency_hz / *before.frequency_hz;
}

}  // namespace

ThreadClock::ThreadClock(std::string processors) : processors_(std::move(processors)) {
  const std::string first = processors_ + "/cpu0";
  has_frequency_ = frequency(first + "/cpufreq/scaling_cur_freq").has_value();
  counts_throttling_ = std::filesystem::exists(first + "/thermal_throttle/core_throttle_count");
  base_frequency_hz_ = frequency(first + "/cpufreq/base_frequency");
}

double ThreadClock::now_s() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

Accounting ThreadClock::accounting() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return {thread_cpu_s(), usage.ru_nivcsw};
}

ProcessorState ThreadClock::processor() {
  ProcessorState out;
  out.processor = std::max(0, ::sched_getcpu());
  const std::string folder = fmt::format("{}/cpu{}", processors_, out.processor);
  if (has_frequency_) out.frequency_hz = frequency(folder + "/cpufreq/scaling_cur_freq");
  if (counts_throttling_) {
    const std::string counts = folder + "/thermal_throttle/";
    out.throttle_events = first_number(counts + "core_throttle_count").value_or(0) +
                          first_number(counts + "package_throttle_count").value_or(0);
  }
  return out;
}

// Files are read outside the thread's accounted time, which in turn encloses the wall time. So the
// cost of asking is neither part of a sample nor mistaken for a wait.
SampleTimer::SampleTimer(MeasuringClock& clock)
    : clock_(clock),
      processor_(clock.processor()),
      accounting_(clock.accounting()),
      start_s_(clock.now_s()) {}

Sample SampleTimer::stop(std::int64_t calls) {
  Sample out;
  out.seconds = clock_.now_s() - start_s_;
  const Accounting accounting = clock_.accounting();
  const ProcessorState processor = clock_.processor();
  out.calls = calls;
  out.disturbance.forced_switches = accounting.forced_switches - accounting_.forced_switches;
  out.disturbance.waited_s =
      std::max(0.0, out.seconds - (accounting.thread_cpu_s - accounting_.thread_cpu_s));
  if (processor.processor == processor_.processor) {
    out.disturbance.throttle_events = processor.throttle_events - processor_.throttle_events;
  }
  out.disturbance.frequency_ratio =
      frequency_ratio(processor_, processor, clock_.base_frequency_hz());
  return out;
}

}  // namespace stepcast
