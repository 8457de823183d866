// SPDX-License-Identifier: Apache-2.0
#include "validate/executor_memory.h"

#include <algorithm>

#include "memory/device_footprint.h"
#include "predict/prediction.h"
#include "program/program.h"

namespace stepcast {

void count_executor_memory(const Scenario& scenario, AttentionBy attention, Prediction& forecast) {
  const Program program = lower(scenario);
  forecast.peak_reserved = forecast.peak_device = 0;
  for (RankClass& one : forecast.rank_classes) {
    const Role& role = program.roles[static_cast<std::size_t>(one.stage)];
    one.reserved_bytes = pooled_bytes(one.peak_memory);
    one.framework_bytes += executor_workspace(program, role, attention);
    forecast.peak_reserved = std::max(forecast.peak_reserved, one.reserved_bytes);
    forecast.peak_device = std::max(forecast.peak_device, one.reserved_bytes + one.framework_bytes);
  }
  forecast.fits = forecast.peak_device <= forecast.device_memory;
}

}  // namespace stepcast
