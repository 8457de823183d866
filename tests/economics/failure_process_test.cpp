// SPDX-License-Identifier: Apache-2.0
// docs/economics.md, "Interruptions and checkpoints".
#include "economics/failure_process.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/seeded_random.h"

namespace stepcast {
namespace {

double sum(const WallShares& s) {
  return s.useful + s.stragglers + s.checkpoint + s.rework + s.restart + s.waiting;
}

FailureProcess drawn(SeededRandom& random) {
  const auto between = [&](double low, double high) {
    return low * std::pow(high / low, random.uniform());
  };
  return {.failures = PerSecond(between(1e-6, 1e-3)),
          .preemptions = PerSecond(between(1e-6, 1e-3)),
          .checkpoint = Seconds(between(1, 300)),
          .restart = Seconds(between(10, 600))};
}

// Daly 2006: a segment of tau + delta takes M e^(R/M) (e^((tau + delta)/M) - 1) on average.
TEST(FailureProcess, IsDalysWithoutPreemptions) {
  SeededRandom random(1);
  for (int i = 0; i < 50; ++i) {
    FailureProcess process = drawn(random);
    process.preemptions = PerSecond();
    const double tau = 60 * std::pow(100, random.uniform());
    const double mean = 1 / process.failures.value(), restart = process.restart.value();
    const double segment =
        mean * std::exp(restart / mean) * std::expm1((tau + process.checkpoint.value()) / mean);
    EXPECT_NEAR(wall_shares(process, Seconds(tau)).useful, tau / segment, 1e-9);
  }
}

TEST(FailureProcess, SharesAddUpToOne) {
  SeededRandom random(2);
  for (int i = 0; i < 50; ++i) {
    const FailureProcess process = drawn(random);
    EXPECT_NEAR(sum(wall_shares(process, Seconds(60 * std::pow(100, random.uniform())))), 1, 1e-12);
  }
}

TEST(FailureProcess, WithoutInterruptionsOnlyCheckpointsCost) {
  const FailureProcess process{.checkpoint = Seconds(10), .restart = Seconds(600)};
  const WallShares shares = wall_shares(process, Seconds(90));
  EXPECT_DOUBLE_EQ(shares.useful, 0.9);
  EXPECT_DOUBLE_EQ(shares.checkpoint, 0.1);
  EXPECT_EQ(shares.restart, 0);
}

// Lost: delta/tau for saving, tau/2M for rework, R/M for restarts, to first order.
TEST(FailureProcess, RareFailuresCostWhatTheFirstOrderSays) {
  const double mean = 1e7, delta = 10, tau = 1e4, restart = 600;
  const FailureProcess process{
      .failures = PerSecond(1 / mean), .checkpoint = Seconds(delta), .restart = Seconds(restart)};
  const WallShares shares = wall_shares(process, Seconds(tau));
  EXPECT_NEAR(shares.checkpoint, delta / tau, 2e-3 * delta / tau);
  EXPECT_NEAR(shares.rework, tau / 2 / mean, 5e-3 * tau / 2 / mean);
  EXPECT_NEAR(shares.restart, restart / mean, 5e-3 * restart / mean);
}

// A preemption in `tau` of training costs one checkpoint more and a restart, and no work.
TEST(FailureProcess, AnnouncedPreemptionsLoseNoWork) {
  const FailureProcess process{
      .preemptions = PerSecond(1e-4), .checkpoint = Seconds(20), .restart = Seconds(100)};
  const WallShares shares = wall_shares(process, Seconds(3600));
  EXPECT_EQ(shares.rework, 0);
  FailureProcess failing = process;
  std::swap(failing.failures, failing.preemptions);
  EXPECT_GT(shares.useful, wall_shares(failing, Seconds(3600)).useful);
}

TEST(FailureProcess, ARestartThatNeverGetsThroughLeavesNothing) {
  const FailureProcess process{
      .failures = PerSecond(1), .checkpoint = Seconds(1), .restart = Seconds(1e4)};
  const WallShares shares = wall_shares(process, Seconds(60));
  EXPECT_EQ(shares.useful, 0);
  EXPECT_EQ(sum(shares), 1);
}

// Without checkpoints and restarts a cycle of tau is kept whole or lost whole; useful time is a
// renewal reward of tau with probability p = e^(-rate tau), and with X the time of a cycle
// Var = E[(tau 1 - g X)^2] / E[X].
TEST(FailureProcess, ScatterOfABareProcessIsItsSecondMoment) {
  const double rate = 1e-3, tau = 700;
  const FailureProcess process{.failures = PerSecond(rate)};
  const double kept = std::exp(-rate * tau), mean = (1 - kept) / rate;
  const double goodput = tau * kept / mean;
  const double lost_square = 2 / (rate * rate) * (1 - kept * (1 + rate * tau)) - kept * tau * tau;
  const double square =
      kept * tau * tau * (1 - goodput) * (1 - goodput) + goodput * goodput * lost_square;
  EXPECT_NEAR(goodput_scatter(process, Seconds(tau)).value(), square / mean, 1e-9 * square / mean);
}

}  // namespace
}  // namespace stepcast
