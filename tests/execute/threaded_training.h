// SPDX-License-Identifier: Apache-2.0
// Trains a scenario for a few steps with every rank a thread of this process.
#pragma once

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

#include "comm/host_group.h"
#include "comm/thread_communicator.h"
#include "execute/host_device.h"
#include "execute/role_runner.h"
#include "execute/whole_model.h"
#include "scenario_from.h"

namespace stepcast::testing {

struct Training {
  std::vector<double> loss;  // mean over the tokens of each step
  std::vector<double> gradient_norm;
  WholeModel model;
  std::vector<MemoryParts> peaks;  // by rank
};

inline Training train(const Scenario& scenario, int steps, const ExecutorOptions& options = {}) {
  const Program program = lower(scenario);
  const RankGrid grid(scenario.layout);
  const auto ranks = static_cast<int>(grid.size());
  auto world = thread_world(ranks);
  Training out;
  out.loss.assign(static_cast<std::size_t>(steps), 0);
  out.gradient_norm.assign(static_cast<std::size_t>(steps), 0);
  out.peaks.resize(static_cast<std::size_t>(ranks));
  std::mutex mutex;
  std::vector<std::thread> threads;
  const double tokens = static_cast<double>(scenario.training.global_batch) *
                        static_cast<double>(scenario.training.sequence_length);
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      try {
        HostGroup group(*world[static_cast<std::size_t>(r)]);
        RoleRunner runner(scenario, program, grid, RankId(r), &group,
                          std::make_unique<HostDevice>(), options);
        for (int s = 0; s < steps; ++s) {
          const StepRecord record = runner.step();
          const std::scoped_lock lock(mutex);
          if (runner.point().tp == 0) {
            out.loss[static_cast<std::size_t>(s)] += record.loss_sum / tokens;
          }
          out.gradient_norm[static_cast<std::size_t>(s)] = record.gradient_norm;
        }
        const std::scoped_lock lock(mutex);
        out.peaks[static_cast<std::size_t>(r)] = runner.ledger().at_peak();
        out.model.take(runner);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << r << ": " << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return out;
}

}  // namespace stepcast::testing
