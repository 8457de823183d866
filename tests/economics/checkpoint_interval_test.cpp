// SPDX-License-Identifier: Apache-2.0
#include "economics/checkpoint_interval.h"

#include <gtest/gtest.h>

#include <boost/math/special_functions/lambert_w.hpp>
#include <cmath>

#include "core/seeded_random.h"

namespace stepcast {
namespace {

constexpr Seconds kUnitStep{1};

// delta 30 s and a failure every 3.09 h: sqrt(2 x 30 x 11,124) = 817 s, 13.6 min.
TEST(CheckpointInterval, YoungsForLlama3IsThirteenMinutes) {
  const PerSecond rate(1 / (3.09 * 3600));
  EXPECT_NEAR(young_interval(Seconds(30), rate).value() / 60, 13.6, 0.05);
}

TEST(CheckpointInterval, DalysIsTheMeanWhereCheckpointsTakeTwiceAsLong) {
  EXPECT_EQ(daly_interval(Seconds(200), PerSecond(0.01)), Seconds(100));
}

// d/dtau of the closed form is zero at tau = M (1 + W(-e^(-1 - delta/M))).
TEST(CheckpointInterval, TheBestIsLamberts) {
  SeededRandom random(3);
  for (int i = 0; i < 30; ++i) {
    const double mean = 1e3 * std::pow(1e3, random.uniform());
    const double delta = mean * 1e-4 * std::pow(1e3, random.uniform());
    const FailureProcess process{.failures = PerSecond(1 / mean),
                                 .checkpoint = Seconds(delta),
                                 .restart = Seconds(0.01 * mean)};
    const double exact = mean * (1 + boost::math::lambert_w0(-std::exp(-1 - delta / mean)));
    EXPECT_NEAR(best_interval(process, Seconds()).value(), exact, 1e-3 * exact);
    EXPECT_NEAR(daly_interval(process.checkpoint, process.failures).value(), exact, 0.01 * exact);
  }
}

// The best interval is so with preemptions too, for which there is no closed form.
TEST(CheckpointInterval, NoOtherIntervalIsBetter) {
  SeededRandom random(4);
  for (int i = 0; i < 30; ++i) {
    const FailureProcess process{.failures = PerSecond(1e-5 * std::pow(100, random.uniform())),
                                 .preemptions = PerSecond(1e-5 * std::pow(100, random.uniform())),
                                 .checkpoint = Seconds(1 + 100 * random.uniform()),
                                 .restart = Seconds(600)};
    const Seconds best = best_interval(process, kUnitStep);
    const double goodput = wall_shares(process, best).useful;
    for (const double factor : {0.01, 0.3, 0.9, 1.1, 3.0, 100.0}) {
      EXPECT_GE(goodput, wall_shares(process, factor * best).useful);
    }
  }
}

TEST(CheckpointInterval, IsNoShorterThanAStep) {
  const FailureProcess free{.failures = PerSecond(1e-4)};
  EXPECT_EQ(best_interval(free, Seconds(5)), Seconds(5));
}

TEST(CheckpointInterval, IsNeverWithoutInterruptions) {
  EXPECT_TRUE(std::isinf(best_interval({.checkpoint = Seconds(9)}, kUnitStep).value()));
  EXPECT_TRUE(std::isinf(young_interval(Seconds(9), PerSecond()).value()));
  EXPECT_TRUE(std::isinf(daly_interval(Seconds(9), PerSecond()).value()));
}

}  // namespace
}  // namespace stepcast
