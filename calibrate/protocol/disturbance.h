// SPDX-License-Identifier: Apache-2.0
// Finds what came between the calling thread and its processor during a sample. Linux tells:
//   forced context switches   getrusage(2), RUSAGE_THREAD, ru_nivcsw
//   time without a processor  wall time less CLOCK_THREAD_CPUTIME_ID (time(7)): preempted, or the
//                             virtual machine's processor stolen by its host where the kernel
//                             accounts for that (CONFIG_PARAVIRT_TIME_ACCOUNTING)
//   throttling                /sys/devices/system/cpu/cpuN/thermal_throttle and cpufreq, where they
//                             exist: admin-guide/pm/cpufreq.rst of the kernel; virtual machines
//                             mostly have neither
// A thread that waits on purpose (for messages, for its own helpers) also goes without a processor:
// see RejectionRule::waiting in calibrate/protocol/protocol.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace stepcast {

// The kernel has charged the thread with this so far.
struct Accounting {
  double thread_cpu_s = 0;
  std::int64_t forced_switches = 0;
};

// The processor that the thread is on.
struct ProcessorState {
  int processor = 0;
  std::int64_t throttle_events = 0;  // so far, its own and its package's
  std::optional<double> frequency_hz;
};

struct Disturbance {
  std::int64_t forced_switches = 0;
  double waited_s = 0;               // without a processor
  std::int64_t throttle_events = 0;  // 0 where nobody counts, and after a move to another processor
  double frequency_ratio = 1;        // at the end against the reference; 1 where unknown
};

class MeasuringClock {
 public:
  virtual ~MeasuringClock() = default;
  virtual double now_s() = 0;  // never goes back
  virtual Accounting accounting() = 0;
  virtual ProcessorState processor() = 0;
  // The frequency that the processor keeps up for ever; unknown: the one at a sample's start.
  virtual std::optional<double> base_frequency_hz() { return std::nullopt; }
};

// The real clock, for the thread that calls it.
class ThreadClock final : public MeasuringClock {
 public:
  explicit ThreadClock(std::string processors = "/sys/devices/system/cpu");
  double now_s() override;
  Accounting accounting() override;
  ProcessorState processor() override;
  std::optional<double> base_frequency_hz() override { return base_frequency_hz_; }

 private:
  std::string processors_;
  bool has_frequency_ = false;
  bool counts_throttling_ = false;
  std::optional<double> base_frequency_hz_;
};

struct Sample {
  double seconds = 0;  // of all calls
  std::int64_t calls = 1;
  Disturbance disturbance;
};

// Takes one sample from its construction to stop().
class SampleTimer {
 public:
  explicit SampleTimer(MeasuringClock& clock);
  Sample stop(std::int64_t calls = 1);

 private:
  MeasuringClock& clock_;
  ProcessorState processor_;
  Accounting accounting_;
  double start_s_;
};

}  // namespace stepcast
