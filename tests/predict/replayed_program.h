// SPDX-License-Identifier: Apache-2.0
// A program of a scenario, replayed in one of several ways.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "layout/scenario.h"
#include "predict/prediction.h"
#include "predict/pricing.h"
#include "predict/record_trace.h"
#include "predict/timeline.h"
#include "program/block_groups.h"
#include "scenario_from.h"

namespace stepcast::testing {

struct PricedCase {
  explicit PricedCase(const GptCase& c) : PricedCase(gpt(c)) {}
  explicit PricedCase(const Scenario& given) : scenario(given), listed(lower(scenario)) {
    auto made = make_pricing(scenario, source_folders());
    EXPECT_TRUE(made.has_value());
    pricing = std::move(*made);
  }
  Scenario scenario;
  Program listed;
  std::unique_ptr<Pricing> pricing;
};

struct Replayed {
  Seconds step;
  TimeParts parts;
  std::size_t tasks = 0;
  Prediction trace;
};

struct Ways {
  bool expand = false;
  bool contention = true;
  Stamps stamps = {};
};

inline Replayed replay(const PricedCase& priced, const Program& program, const Ways& ways) {
  const RankGrid grid(priced.scenario.layout);
  const Traffic traffic =
      place_traffic(priced.scenario, program, grid, priced.pricing->collectives, ways.stamps);
  const Symmetry symmetry =
      find_symmetry(priced.scenario, grid, traffic, priced.pricing->collectives, true);
  const RunCosts costs(priced.scenario, program, grid, symmetry, priced.pricing->kernels,
                       priced.pricing->collectives);
  const Profile& profile = priced.pricing->kernels.profile();
  const SimulationInput input{priced.scenario,
                              program,
                              grid,
                              traffic,
                              symmetry,
                              costs,
                              profile.host[priced.scenario.training.framework],
                              ways.expand,
                              ways.contention,
                              false,
                              profile.sms_per_channel,
                              ways.stamps};
  auto simulation = simulate(input, 2);
  EXPECT_TRUE(simulation.has_value()) << (simulation ? "" : to_string(simulation.error()));
  if (!simulation) return {};
  const ClassTimeline timeline = read_timeline(input, *simulation, 0, 1);
  Replayed out{sim::seconds(timeline.step_end - timeline.step_begin),
               timeline.parts,
               simulation->task_count,
               {}};
  record_trace(input, *simulation, timeline.step_begin, true, out.trace);
  return out;
}

// Every pass is stamped, with all collectives as tasks that load links.
inline Stamps everywhere(const Program& program) {
  Stamps stamps;
  for (const Role& role : program.roles) {
    std::vector<std::vector<AxisGroup>>& own = stamps.emplace_back();
    for (const Instruction& what : role.instructions) {
      own.emplace_back();
      if (what.is<RunPass>()) own.back() = groups_in_blocks(program);
    }
  }
  return stamps;
}

}  // namespace stepcast::testing
