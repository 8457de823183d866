// SPDX-License-Identifier: Apache-2.0
// Scenarios behind docs/worked-examples.md: ranks that share states, and shipped models laid out.
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "memory/states.h"
#include "scenario_from.h"

namespace stepcast::testing {

constexpr double kGB = 1e9;

inline double gigabytes(ByteCount bytes) { return static_cast<double>(bytes) / kGB; }

// States of `parameters` on one of `ranks` data-parallel ranks. "native" is the textbook's mixed
// precision: 2 + 2 + 4 + 8 bytes per parameter.
inline StateBytes states(double parameters, int zero = 0, std::int64_t ranks = 1,
                         const std::string& framework = "native",
                         const std::string& precision = "bf16") {
  GptCase c;
  c.framework = framework;
  c.precision = precision;
  c.zero = zero;
  Scenario scenario = gpt(c);
  scenario.layout.dp = ranks;
  return state_bytes(scenario, static_cast<std::int64_t>(parameters));
}

// A shipped model, unfused attention as in the papers of its time, sequences of 2048 tokens.
struct RunCase {
  std::string model = "gpt3-175b", cluster = "dgx-a100-80g", recompute = "none";
  int gpus = 8, tp = 8, pp = 1, global_batch = 1, sequence = 2048;
  bool sequence_parallel = false;
};

inline std::string text_of(const RunCase& c) {
  const auto n = [](int value) { return std::to_string(value); };
  return R"({"stepcast": 1, "model": ")" + c.model + R"(", "cluster": {"base": ")" + c.cluster +
         R"(", "gpus": )" + n(c.gpus) + R"(}, "training": {"global_batch": )" + n(c.global_batch) +
         R"(, "sequence_length": )" + n(c.sequence) +
         R"(, "attention": "unfused"}, "layout": {"tp": )" + n(c.tp) + R"(, "pp": )" + n(c.pp) +
         R"(, "sequence_parallel": )" + (c.sequence_parallel ? "true" : "false") +
         R"(, "recompute": ")" + c.recompute + R"("}})";
}

inline Scenario run_of(const RunCase& c) { return scenario_from(text_of(c)); }

// Devices 0, 1, ... of a cluster.
inline std::vector<DeviceId> first_devices(std::int64_t count) {
  std::vector<DeviceId> devices;
  for (std::int32_t i = 0; i < count; ++i) devices.push_back(DeviceId(i));
  return devices;
}

}  // namespace stepcast::testing
