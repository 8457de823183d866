// SPDX-License-Identifier: Apache-2.0
// A scenario's program with all prices, ready to be replayed.
#pragma once

#include "layout/scenario.h"
#include "predict/pricing.h"
#include "predict/simulation.h"
#include "predict/timed_orders.h"

namespace stepcast::testing {

struct PricedStep {
  PricedStep(const Scenario& scenario, const Pricing& pricing)
      : PricedStep(scenario, pricing, lower(scenario, timed_orders(scenario, pricing))) {}
  PricedStep(const Scenario& scenario, const Pricing& pricing, Program lowered)
      : program(std::move(lowered)),
        grid(scenario.layout),
        traffic(place_traffic(scenario, program, grid, pricing.collectives)),
        symmetry(find_symmetry(scenario, grid, traffic, pricing.collectives, true)),
        costs(scenario, program, grid, symmetry, pricing.kernels, pricing.collectives),
        profile(pricing.kernels.profile()),
        input{scenario,
              program,
              grid,
              traffic,
              symmetry,
              costs,
              profile.host[scenario.training.framework],
              false,
              true,
              false,
              profile.sms_per_channel,
              kNoStamps,
              profile.host_memory} {}
  PricedStep(const PricedStep&) = delete;
  PricedStep& operator=(const PricedStep&) = delete;

  Program program;
  RankGrid grid;
  Traffic traffic;
  Symmetry symmetry;
  RunCosts costs;
  const Profile& profile;
  SimulationInput input;
};

}  // namespace stepcast::testing
