// SPDX-License-Identifier: Apache-2.0
// Holds the closed forms against the process drawn event by event.
#include "economics/run_simulation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/seeded_random.h"
#include "economics/checkpoint_interval.h"

namespace stepcast {
namespace {

constexpr double kDay = 86400;

Hazards drawn_hazards(SeededRandom& random) {
  const auto between = [&](double low, double high) {
    return low * std::pow(high / low, random.uniform());
  };
  Hazards hazards;
  hazards.process.failures = PerSecond(between(1, 50) / kDay);
  hazards.process.preemptions = PerSecond(random.uniform() < 0.5 ? 0 : between(1, 50) / kDay);
  hazards.process.checkpoint = Seconds(between(1, 200));
  hazards.process.restart = Seconds(between(60, 900));
  hazards.node_losses = random.uniform() * hazards.process.interruptions();
  hazards.away = Seconds(between(0.01, 0.2) * kDay);
  hazards.spare_nodes = random.below(4);
  hazards.stragglers = PerSecond(between(0.5, 10) / kDay);
  hazards.detection = Seconds(between(600, 7200));
  hazards.slowdown = random.uniform();
  return hazards;
}

// Makes them a job's that goes on without lost nodes, and whose results are wrong now and then.
Hazards with_corruption(SeededRandom& random, Hazards hazards) {
  hazards.lost_per_node =
      random.uniform() < 0.5 ? 0 : 1.0 / static_cast<double>(4 + random.below(60));
  hazards.corruptions = PerSecond((0.2 + random.uniform()) / kDay);
  hazards.corruption_check = Seconds((0.05 + 0.4 * random.uniform()) * kDay);
  hazards.check_time = Seconds(600 * random.uniform());
  return hazards;
}

// Goodput agrees within 1 %; with 200,000 interruptions chance makes up about a fifth of that.
// Nothing fails while a warned checkpoint is written, which Erlang's formula does not know, so
// waiting comes out lower by that share of time.
TEST(RunSimulation, GoodputIsTheClosedFormsWithinOnePercent) {
  SeededRandom random(5);
  for (int i = 0; i < 12; ++i) {
    const Hazards hazards = drawn_hazards(random);
    const Seconds best = best_interval(hazards.process, Seconds(1));
    const Seconds interval = best * std::pow(4, random.uniform() - 0.5);
    const WallShares expected = wall_shares(hazards, interval);
    const Seconds horizon(2e5 / hazards.process.interruptions().value());
    const WallShares drawn_hazards = simulate_run(hazards, interval, horizon, 100 + i).shares;
    EXPECT_NEAR(drawn_hazards.useful, expected.useful, 0.01 * expected.useful) << i;
    EXPECT_NEAR(drawn_hazards.checkpoint, expected.checkpoint, 0.003) << i;
    EXPECT_NEAR(drawn_hazards.rework, expected.rework, 0.003) << i;
    EXPECT_NEAR(drawn_hazards.restart, expected.restart, 0.003) << i;
    EXPECT_NEAR(drawn_hazards.waiting, expected.waiting, 0.002 + 0.02 * expected.waiting) << i;
    EXPECT_NEAR(drawn_hazards.stragglers, expected.stragglers, 0.003) << i;
  }
}

// A corruption is rarer than an interruption: with 10,000 of them chance makes up about 1 %.
TEST(RunSimulation, AgreesOnFewerReplicasAndOnWrongResults) {
  SeededRandom random(9);
  for (int i = 0; i < 8; ++i) {
    const Hazards hazards = with_corruption(random, drawn_hazards(random));
    const Seconds interval = best_interval(hazards.process, Seconds(1));
    const WallShares expected = wall_shares(hazards, interval);
    const Seconds horizon(1e4 / hazards.corruptions.value());
    const WallShares drawn = simulate_run(hazards, interval, horizon, 300 + i).shares;
    EXPECT_NEAR(drawn.useful, expected.useful, 0.02 * expected.useful) << i;
    EXPECT_NEAR(drawn.rework, expected.rework, 0.005 + 0.02 * expected.rework) << i;
    EXPECT_NEAR(drawn.checks, expected.checks, 0.001 + 0.02 * expected.checks) << i;
    EXPECT_NEAR(drawn.restart, expected.restart, 0.004) << i;
    EXPECT_NEAR(drawn.reduced, expected.reduced, 0.002 + 0.03 * expected.reduced) << i;
    EXPECT_NEAR(drawn.waiting, expected.waiting, 0.004 + 0.03 * expected.waiting) << i;
  }
}

// 90 % of 400 runs of 30 days should lie within 1.645 deviations; chance makes that 85 to 95 %.
TEST(RunSimulation, RunsScatterAsTheClosedFormSays) {
  Hazards hazards;
  hazards.process = {.failures = PerSecond(6 / kDay),
                     .preemptions = PerSecond(2 / kDay),
                     .checkpoint = Seconds(30),
                     .restart = Seconds(600)};
  const Seconds interval = best_interval(hazards.process, Seconds(1));
  const Seconds wall(30 * kDay);
  const double mean = wall_shares(hazards, interval).useful;
  const double deviation = std::sqrt(goodput_scatter(hazards.process, interval) / wall);
  int inside = 0;
  constexpr int kRuns = 400;
  for (int i = 0; i < kRuns; ++i) {
    const SimulatedRun run = simulate_run(hazards, interval, wall, static_cast<std::uint64_t>(i));
    inside += std::abs(run.shares.useful - mean) < 1.645 * deviation;
  }
  EXPECT_NEAR(inside, 0.9 * kRuns, 0.05 * kRuns);
}

// A checkpoint after each nanosecond of a run of 30 days, a restart that is hardly ever
// through before it is interrupted, and stragglers in every nanosecond: each alone would draw for
// hours.
TEST(RunSimulation, EndsWhateverTheNumbersAre) {
  Hazards hazards;
  hazards.process = {.failures = PerSecond(1 / kDay), .restart = Seconds(600)};
  EXPECT_GT(simulate_run(hazards, Seconds(1e-9), Seconds(30 * kDay), 1).shares.useful, 0.99);
  hazards.process = {.failures = PerSecond(1), .restart = Seconds(100)};
  EXPECT_GT(simulate_run(hazards, Seconds(1), Seconds(30 * kDay), 1).interruptions, 1'000'000);
  hazards.process = {.failures = PerSecond(1 / kDay), .restart = Seconds(600)};
  hazards.stragglers = PerSecond(1e9);
  hazards.slowdown = 1;
  EXPECT_GE(simulate_run(hazards, Seconds(1000), Seconds(30 * kDay), 1).interruptions, 0);
}

TEST(RunSimulation, EqualSeedsGiveEqualRuns) {
  SeededRandom random(6);
  const Hazards hazards = drawn_hazards(random);
  const auto run = [&](std::uint64_t seed) {
    return simulate_run(hazards, Seconds(1000), Seconds(100 * kDay), seed).shares.useful;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

TEST(RunSimulation, WithoutHazardsOnlyCheckpointsTakeTime) {
  Hazards hazards;
  hazards.process.checkpoint = Seconds(10);
  const SimulatedRun run = simulate_run(hazards, Seconds(90), Seconds(1e5), 1);
  EXPECT_NEAR(run.shares.useful, 0.9, 1e-12);
  EXPECT_EQ(run.interruptions, 0);
}

}  // namespace
}  // namespace stepcast
