// SPDX-License-Identifier: Apache-2.0
// The machine that the program runs on, as Linux describes it: /proc/cpuinfo, /proc/meminfo, the
// scheduler's affinity. Nothing is measured.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/quantity.h"

namespace stepcast {

struct MachineFacts {
  std::string processor;         // "AMD EPYC 7763 64-Core Processor"
  std::string vendor;            // "AuthenticAMD"; empty where /proc/cpuinfo has none
  double clock_hz = 0;           // of one core; 0: not stated
  std::int64_t vector_bits = 0;  // of the widest floating-point registers
  bool fused_multiply_add = false;
  std::int64_t cores = 1;  // that this process may use, hardware threads included
  ByteCount memory = 0;    // MemTotal
  std::string unreadable;  // a file that is there and cannot be read: the facts are not complete
};

// Reads the texts of the files. The clock has to be the same on every call, because profiles hold
// fractions of the peak that follows from it: `max_frequency_khz` (cpufreq's cpuinfo_max_freq, ""
// where there is none), else the name's "@ 2.50GHz", else half of the bogomips of an x86 processor
// (its time-stamp counter), else "cpu MHz".
MachineFacts parse_machine(std::string_view cpuinfo, std::string_view meminfo,
                           std::string_view max_frequency_khz);

MachineFacts this_machine();

}  // namespace stepcast
