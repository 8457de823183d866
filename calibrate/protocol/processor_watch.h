// SPDX-License-Identifier: Apache-2.0
// How a machine's processors were used while something was measured, as Linux counts it:
//   /proc/stat, line "cpu"       seconds of all processors since the start, by what they did, in
//                                ticks of sysconf(_SC_CLK_TCK); proc(5)
//   getrusage(2), RUSAGE_SELF    seconds that this process had a processor
#pragma once

#include <optional>
#include <string>

#include "core/processor_use.h"

namespace stepcast {

// The counts of a line "cpu  user nice system idle iowait irq softirq steal ..." in seconds; what
// is no such line reads as nothing. `own_s` stays 0.
std::optional<ProcessorUse> parse_processor_use(const std::string& line, double ticks_per_s);

// Counts from its construction on.
class ProcessorWatch {
 public:
  explicit ProcessorWatch(std::string stat_file = "/proc/stat");
  // Nothing where the kernel does not tell.
  std::optional<ProcessorUse> so_far() const;

 private:
  std::optional<ProcessorUse> read() const;
  std::string stat_file_;
  std::optional<ProcessorUse> start_;
};

}  // namespace stepcast
