// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/gpu_condition.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/read_rows.h"
#include "core/row_types.h"
#include "core/statistics.h"
#include "core/write_rows.h"

namespace stepcast {
namespace {

double median_of(const std::vector<GpuCondition>& conditions, double GpuCondition::*value) {
  std::vector<double> told;
  for (const GpuCondition& condition : conditions) {
    if (condition.*value > 0) told.push_back(condition.*value);
  }
  return median(std::move(told));
}

}  // namespace

bool is_protecting(const GpuCondition& condition) {
  return std::ranges::any_of(condition.held_by,
                             [](const std::string& reason) { return reason != "power_cap"; });
}

GpuCondition typical_of(const std::vector<GpuCondition>& conditions) {
  GpuCondition out{median_of(conditions, &GpuCondition::sm_clock_mhz),
                   median_of(conditions, &GpuCondition::power_w)};
  for (const GpuCondition& condition : conditions) {
    out.held_by.insert(condition.held_by.begin(), condition.held_by.end());
  }
  return out;
}

Json to_json(const GpuCondition& condition) { return json_of(condition); }
GpuCondition read_gpu_condition(const JsonValue& value) { return read_object<GpuCondition>(value); }

std::string words_of(const GpuCondition& condition) {
  std::string out;
  if (condition.sm_clock_mhz > 0) out += fmt::format(", at {:.0f} MHz", condition.sm_clock_mhz);
  if (condition.power_w > 0) out += fmt::format(", {:.0f} W", condition.power_w);
  if (!condition.held_by.empty()) {
    out += fmt::format(", held by {}", fmt::join(condition.held_by, " and "));
  }
  return out;
}

Rows GpuCondition::fields() {
  using F = GpuCondition;
  static constexpr Row all[] = {row<&F::sm_clock_mhz>("sm_clock_mhz").within(0, 1e6).unless_usual(),
                                row<&F::power_w>("power_w").within(0, 1e6).unless_usual(),
                                row<&F::held_by>("held_by").unless_usual()};
  return rows_of<F>(all);
}

}  // namespace stepcast
