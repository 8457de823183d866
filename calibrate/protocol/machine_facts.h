// SPDX-License-Identifier: Apache-2.0
// The machine on which a measurement was made, as a profile states it under "machine". Facts that
// the machine does not give are empty, and left out of the JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/json_fwd.h"
#include "core/quantity.h"

namespace stepcast {

struct MachineDescription {
  std::string processor;
  int cores = 0;    // that this process may use: affinity and the control group's quota
  int sockets = 0;  // 0: unknown
  std::vector<std::string> caches;  // of one core, "L2 1 MiB", "L3 32 MiB shared by 8"
  ByteCount memory_bytes = 0;       // of the machine, or what the control group allows
  std::string hostname;
  std::string system;  // kernel and architecture
  std::string governor;
  std::string compiler;
  std::string blas;
  std::string date;  // "2026-01-31", UTC
};

struct MachineFactsInput {
  std::string blas;  // what the library says of itself
  std::string date;  // empty: today's
  std::string root;  // in front of /proc and /sys; empty but for tests
};

MachineDescription read_machine_facts(const MachineFactsInput& input);

// processor, cores, sockets, caches, memory ("23.5 GiB"), hostname, system, governor, compiler,
// blas, date.
Json to_json(const MachineDescription& facts);

// The part that makes durations comparable, for calibrate/protocol/journal.h: without the date, and
// without the system's release, which an update changes in the middle of a long calibration.
Json machine_identity(const MachineDescription& facts);

}  // namespace stepcast
