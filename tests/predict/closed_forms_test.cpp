// SPDX-License-Identifier: Apache-2.0
// Pipelines whose passes all take one second and whose transfers take no time: bubbles in closed
// form, and schedules that can never end.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "cost/collective_cost.h"
#include "predict/simulation.h"
#include "predict/timeline.h"
#include "scenario_from.h"
#include "timed_blocks.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;

// Takes no time and holds no SMs.
CollectivePrice free_price() {
  CollectivePrice price;
  price.rate_bound = BytesPerSecond(1);
  price.channels = 0;
  return price;
}

void make_free(Traffic& traffic) {
  for (GroupTraffic& groups : traffic.groups) {
    for (GroupOrbit& orbit : groups.orbits) {
      for (Priced& priced : orbit.prices) priced.price = free_price();
      for (auto& loads : orbit.loads) loads.clear();
    }
  }
  for (PairTraffic& pairs : traffic.pairs) {
    for (PairOrbit& pair : pairs.orbits) {
      pair.price = free_price();
      pair.loads.clear();
    }
  }
}

struct UnitPipeline {
  explicit UnitPipeline(const GptCase& c)
      : scenario(gpt(c)), grid(scenario.layout), program(lower(scenario)) {}

  // Prices, folds and replays the program as it stands.
  Result<double> bubble() const {
    const CollectiveCosts collectives(scenario.cluster, "");
    Traffic traffic = place_traffic(scenario, program, grid, collectives);
    make_free(traffic);
    const Symmetry symmetry = find_symmetry(scenario, grid, traffic, collectives, true);
    // Each chunk has one layer, whose passes take a second; what is left of a step is free.
    const BlockId layer = program.roles.front().chunks.front().blocks[1];
    const KernelCosts kernels = testing::seconds_for(scenario, program, {layer});
    const RunCosts costs(scenario, program, grid, symmetry, kernels, collectives);
    const HostFit host;
    const SimulationInput input{scenario, program, grid,  traffic, symmetry,
                                costs,    host,    false, true};
    const auto simulation = simulate(input, 2);
    if (!simulation) return failure(simulation.error());
    // span = first forward start to last backward end, B = the largest span; bubble = 1 -
    // mean(busy) / B.
    double busy = 0, largest = 0;
    for (std::size_t c = 0; c < symmetry.ranks.size(); ++c) {
      const ClassTimeline timeline =
          read_timeline(input, *simulation, static_cast<std::int32_t>(c), 1);
      const double span = sim::seconds(timeline.span_end - timeline.span_begin).value();
      busy += timeline.busy.value() * static_cast<double>(symmetry.ranks[c].size());
      largest = std::max(largest, span);
    }
    return 1 - busy / static_cast<double>(grid.size()) / largest;
  }

  Scenario scenario;
  RankGrid grid;
  Program program;
};

GptCase pipeline(const std::string& schedule, int stages, int micro_batches, int chunks = 1) {
  GptCase c;
  c.schedule = schedule;
  c.pp = stages;
  c.virtual_stages = chunks;
  c.layers = stages * chunks;
  c.global_batch = micro_batches;
  c.tied = false;
  return c;
}

double bubble(const GptCase& c) {
  const auto result = UnitPipeline(c).bubble();
  EXPECT_TRUE(result.has_value()) << (result ? std::string() : to_string(result.error()));
  return result.value_or(-1);
}

// p-1 of m+p-1 pairs of passes are idle on every stage (Huang et al. 2019; Narayanan et al. 2021,
// section 2.2.1).
TEST(Bubble, OfGpipeIsPMinus1OverMPlusPMinus1) {
  for (const auto& [p, m] : {std::pair{2, 2}, {2, 7}, {4, 4}, {4, 32}, {8, 5}}) {
    EXPECT_NEAR(bubble(pipeline("gpipe", p, m)), (p - 1.0) / (m + p - 1), 1e-12) << p << " " << m;
  }
}

TEST(Bubble, Of1F1BIsPMinus1OverMPlusPMinus1) {
  for (const auto& [p, m] : {std::pair{2, 2}, {2, 7}, {4, 4}, {4, 32}, {8, 5}, {8, 64}}) {
    EXPECT_NEAR(bubble(pipeline("1f1b", p, m)), (p - 1.0) / (m + p - 1), 1e-12) << p << " " << m;
  }
}

// v chunks per stage shorten a pass v times: p-1 of vm+p-1 (Narayanan et al. 2021, section 2.2.2).
TEST(Bubble, OfInterleavedIsPMinus1OverVMPlusPMinus1) {
  for (const auto& [p, m, v] :
       {std::tuple{2, 2, 2}, {2, 4, 3}, {4, 4, 2}, {4, 16, 2}, {8, 16, 3}}) {
    EXPECT_NEAR(bubble(pipeline("interleaved", p, m, v)), (p - 1.0) / (v * m + p - 1), 1e-12)
        << p << " " << m << " " << v;
  }
}

// Forward, input gradient and weight gradient take a second each: ZB-H1 leaves p-1 seconds of
// 3m+p-1 idle, ZB-H2 and ZB-V none (Qi et al. 2024, sections 2.3 and 6).
TEST(Bubble, OfZbH1IsPMinus1Over3MPlusPMinus1) {
  for (const auto& [p, m] : {std::pair{2, 2}, {2, 7}, {4, 4}, {4, 32}, {8, 16}}) {
    EXPECT_NEAR(bubble(pipeline("zb-h1", p, m)), (p - 1.0) / (3 * m + p - 1), 1e-12)
        << p << " " << m;
  }
}

TEST(Bubble, OfZbH2AndZbVIsNothing) {
  for (const auto& [p, m] : {std::pair{2, 4}, {4, 8}, {4, 32}, {8, 16}}) {
    EXPECT_NEAR(bubble(pipeline("zb-h2", p, m)), 0, 1e-12) << p << " " << m;
    EXPECT_NEAR(bubble(pipeline("zb-v", p, m, 2)), 0, 1e-12) << p << " " << m;
  }
}

// V-Half leaves (3p-7)/2 forwards of a stage idle where p is even, V-Min (4p-5)/2 where p is no
// multiple of 3 (tests/schedule/zero_bubble_test.cpp has both for 3 to 32 stages). A chunk's pass
// takes a second here.
TEST(Bubble, OfVHalfAndVMinIsThatOfTheirOrders) {
  for (const auto& [p, m] : {std::pair{4, 8}, {4, 16}, {8, 16}}) {
    EXPECT_NEAR(bubble(pipeline("v-half", p, m, 2)), (3 * p - 7.0) / (6 * m + 3 * p - 7), 1e-12)
        << p << " " << m;
    EXPECT_NEAR(bubble(pipeline("v-min", p, m, 2)), (4 * p - 5.0) / (6 * m + 4 * p - 5), 1e-12)
        << p << " " << m;
  }
}

// Stage 0 sends micro-batch 0 first, stage 1 is ready to receive micro-batch 1 first.
TEST(Deadlock, OfAScheduleNamesTheInstructionsOfTheCycle) {
  UnitPipeline two_stages(pipeline("1f1b", 2, 4));
  std::vector<Receive*> receives;
  for (Instruction& what : two_stages.program.roles[1].instructions) {
    if (auto* receive = what.as<Receive>()) receives.push_back(receive);
  }
  ASSERT_GE(receives.size(), 2u);
  std::swap(receives[0]->tag, receives[1]->tag);
  const auto result = two_stages.bubble();
  ASSERT_FALSE(result.has_value());
  const std::string text = to_string(result.error());
  EXPECT_NE(text.find("layout.schedule: deadlock"), std::string::npos) << text;
  EXPECT_NE(text.find("stage 0 send of micro-batch 0 with stage 1 receive of micro-batch"),
            std::string::npos)
      << text;
}

TEST(Deadlock, OfASendThatNobodyReceivesIsFoundBeforeTheReplay) {
  UnitPipeline two_stages(pipeline("1f1b", 2, 4));
  for (Instruction& what : two_stages.program.roles[1].instructions) {
    if (auto* receive = what.as<Receive>()) {
      receive->tag += 1000;
      break;
    }
  }
  const auto result = two_stages.bubble();
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(to_string(result.error()).find("meets no instruction"), std::string::npos);
}

}  // namespace
}  // namespace stepcast
