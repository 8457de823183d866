// SPDX-License-Identifier: Apache-2.0
// The object `plan` of a scenario file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace stepcast {

class JsonValue;

// Quantiles of the step time that places may be ranked by. Below the half a search would prefer
// what is least known.
inline constexpr double kLeastRisk = 0.5, kMostRisk = 0.99;

// The object `plan`: limits of a search.
struct PlanInput {
  std::optional<std::string> objective;    // step_time, cost or goodput
  std::optional<std::int64_t> max_gpus;    // of the cluster
  std::optional<double> memory_margin;     // of the device's memory, to be left free
  std::optional<double> risk;              // the quantile of the step time that ranks places
  std::optional<double> min_tokens_per_s;  // of all GPUs: what an advice must reach
};
PlanInput read_plan(const JsonValue& value);

}  // namespace stepcast
