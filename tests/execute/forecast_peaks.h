// SPDX-License-Identifier: Apache-2.0
// Every rank holds at its peak what was forecast, on its device and in host memory, within a
// hundredth.
#pragma once

#include <gtest/gtest.h>

#include "layout/scenario.h"
#include "predict/memory_replay.h"
#include "threaded_training.h"

namespace stepcast::testing {

inline void expect_forecast_peaks(const Scenario& scenario, const TrainedRun& trained) {
  const Program program = lower(scenario);
  const RankGrid grid(scenario.layout);
  for (std::int32_t r = 0; r < grid.size(); ++r) {
    const Role& role = program.roles[static_cast<std::size_t>(grid.point(RankId(r)).pp)];
    const MemoryParts forecast = replay_memory(program, role).parts;
    const MemoryParts& counted = trained.peaks[static_cast<std::size_t>(r)];
    const double ratio = static_cast<double>(total(counted)) / static_cast<double>(total(forecast));
    EXPECT_NEAR(ratio, 1, 0.01) << "rank " << r
                                << ", bytes by category: " << ::testing::PrintToString(counted)
                                << " for " << ::testing::PrintToString(forecast);
  }
}

inline void expect_forecast_host_peaks(const Scenario& scenario, const TrainedRun& trained) {
  const Program program = lower(scenario);
  const RankGrid grid(scenario.layout);
  for (std::int32_t r = 0; r < grid.size(); ++r) {
    const Role& role = program.roles[static_cast<std::size_t>(grid.point(RankId(r)).pp)];
    const auto forecast = static_cast<double>(replay_memory(program, role).host);
    const MemoryParts& held = trained.host_peaks[static_cast<std::size_t>(r)];
    const auto counted = static_cast<double>(total(held));
    EXPECT_GT(forecast, 0);
    EXPECT_NEAR(counted / forecast, 1, 0.01) << "rank " << r << " in host memory";
  }
}

}  // namespace stepcast::testing
