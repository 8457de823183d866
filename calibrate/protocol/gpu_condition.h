// SPDX-License-Identifier: Apache-2.0
// The clock and the power of a GPU while it was measured. A product that runs into the power limit
// is measured at another clock than a short one, so times are worth little without them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/json_fwd.h"

namespace stepcast {

struct Rows;  // core/rows.h

struct GpuCondition {
  double sm_clock_mhz = 0;  // 0: the driver does not tell
  double power_w = 0;       // 0: the driver does not tell
  // The clocks are held down by: "power_cap", "hardware_slowdown", "software_thermal",
  // "hardware_thermal", "power_brake".
  std::set<std::string> held_by = {};

  static Rows fields();
};

// Clocks that the driver holds down to protect the board: too hot, or power failing. The power cap
// is no such reason: products run into it for as long as they last.
bool is_protecting(const GpuCondition& condition);

// The medians of those that tell, and everything that held any of them down.
GpuCondition typical_of(const std::vector<GpuCondition>& conditions);

//   {"sm_clock_mhz": 1755, "power_w": 690, "held_by": ["power_cap"]}
// What is not told is left out.
Json to_json(const GpuCondition& condition);
// Errors go to the value's document.
GpuCondition read_gpu_condition(const JsonValue& value);
// ", at 1755 MHz, 690 W, held by power_cap"; empty where nothing is told.
std::string words_of(const GpuCondition& condition);

}  // namespace stepcast
