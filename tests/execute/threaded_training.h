// SPDX-License-Identifier: Apache-2.0
// Trains a scenario for a few steps with every rank in a thread of this process.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/host_group.h"
#include "comm/thread_world.h"
#include "core/text/escape.h"
#include "execute/host_device.h"
#include "execute/role_runner.h"
#include "execute/whole_model.h"
#include "layout/scenario.h"
#include "program/check_causality.h"
#include "scenario_from.h"

namespace stepcast::testing {

struct TrainedRun {
  std::vector<double> loss;  // mean over the tokens of each step
  std::vector<double> gradient_norm;
  WholeModel model;
  std::vector<MemoryParts> peaks, host_peaks;  // by rank
};

// No cause of the step that ran comes behind its effect. Events of GPUs are microseconds apart.
inline void expect_causes(const Role& role, const DataFlow& flow, const StepRecord& record) {
  std::vector<RecordedSpan> spans;
  for (const auto& span : record.spans) spans.push_back({span.start, span.end});
  const auto broken = broken_cause(role, flow, spans, 2e-6);
  EXPECT_FALSE(broken) << *broken;
}

// Runs ranks: calls `body` in a thread of each, and makes their devices.
struct Ranks {
  std::function<void(int ranks, const std::function<void(DeviceCommunicator& world)>& body)> run;
  std::function<std::unique_ptr<Device>()> device;
};

inline Ranks on_host() {
  return {[](int ranks, const auto& body) {
            const auto worlds = thread_world(ranks);
            std::vector<std::thread> threads;
            for (const auto& world : worlds) {
              threads.emplace_back([&] {
                try {
                  HostGroup group(*world);
                  body(group);
                } catch (const std::exception& error) {
                  ADD_FAILURE() << "rank " << world->rank() << ": " << error.what();
                }
              });
            }
            for (std::thread& thread : threads) thread.join();
          },
          [] { return std::make_unique<HostDevice>(); }};
}

inline TrainedRun train(const Scenario& scenario, const Program& program, int steps,
                        const Ranks& ranks = on_host(), const ExecutorOptions& options = {}) {
  const RankGrid grid(scenario.layout);
  TrainedRun out;
  out.loss.assign(static_cast<std::size_t>(steps), 0);
  out.gradient_norm.assign(static_cast<std::size_t>(steps), 0);
  out.peaks.resize(static_cast<std::size_t>(grid.size()));
  out.host_peaks.resize(static_cast<std::size_t>(grid.size()));
  std::vector<DataFlow> flows;  // by stage
  for (const Role& role : program.roles) flows.push_back(data_flow(program, role, grid));
  const auto broken = broken_cause(program, grid);
  EXPECT_FALSE(broken) << *broken;
  std::mutex mutex;
  const double tokens = static_cast<double>(scenario.training.global_batch) *
                        static_cast<double>(scenario.training.sequence_length);
  ranks.run(static_cast<int>(grid.size()), [&](DeviceCommunicator& world) {
    RoleRunner runner(scenario, program, grid, RankId(world.rank()), &world, ranks.device(),
                      options);
    for (int s = 0; s < steps; ++s) {
      const StepRecord record = runner.step();
      const std::scoped_lock lock(mutex);
      const auto stage = static_cast<std::size_t>(runner.point().pp);
      expect_causes(program.roles[stage], flows[stage], record);
      if (runner.point().tp == 0) out.loss[static_cast<std::size_t>(s)] += record.loss_sum / tokens;
      out.gradient_norm[static_cast<std::size_t>(s)] = record.gradient_norm;
    }
    const std::scoped_lock lock(mutex);
    out.peaks[static_cast<std::size_t>(world.rank())] = runner.ledger().at_peak();
    out.host_peaks[static_cast<std::size_t>(world.rank())] = runner.host_ledger().at_peak();
    out.model.take(runner);
  });
  return out;
}

inline TrainedRun train(const Scenario& scenario, int steps, const Ranks& ranks = on_host(),
                        const ExecutorOptions& options = {}) {
  return train(scenario, lower(scenario), steps, ranks, options);
}

// A run that several cases compare themselves with: each process trains it once.
inline const TrainedRun& trained_once(const Scenario& scenario, int steps,
                                      const ExecutorOptions& options = {}) {
  static std::mutex mutex;
  static std::map<std::string, TrainedRun> runs;
  std::string key = fmt::format("{} {} {} {} {}", json_text(to_json(scenario)), steps, options.seed,
                                options.fan_out, options.by_scores);
  if (options.spread) {
    const ExpertSpread& s = *options.spread;
    key += fmt::format(" {} {} {} {} {} {}", s.experts, s.top_k, s.period, s.sequences, s.ranks,
                       s.favoured);
  }
  const std::scoped_lock lock(mutex);
  auto found = runs.find(key);
  if (found == runs.end()) {
    found = runs.emplace(key, train(scenario, steps, on_host(), options)).first;
  }
  return found->second;
}

}  // namespace stepcast::testing
