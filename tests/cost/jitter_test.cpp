// SPDX-License-Identifier: Apache-2.0
#include "cost/jitter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/seeded_random.h"

namespace stepcast {
namespace {

double normal(SeededRandom& random) {
  const double angle = 2 * M_PI * random.uniform();
  return std::sqrt(-2 * std::log(1 - random.uniform())) * std::cos(angle);
}

// The mean of the largest of `ranks` draws, less that of one.
double simulated_lag(std::int64_t ranks, const std::function<double(SeededRandom&)>& draw,
                     int trials = 200000) {
  SeededRandom random(7);
  double largest = 0, mean = 0;
  for (int i = 0; i < trials; ++i) {
    double last = -1e300;
    for (std::int64_t r = 0; r < ranks; ++r) {
      const double value = draw(random);
      last = std::max(last, value);
      mean += value / static_cast<double>(ranks);
    }
    largest += last;
  }
  return (largest - mean) / trials;
}

TEST(Jitter, NormalBodiesLagByTheExpectedLargest) {
  for (const std::int64_t ranks : {2, 4, 8, 16, 32}) {
    const double lag = lag_of_last({9e-6, {}, 0}, ranks).value();
    const double simulated =
        simulated_lag(ranks, [](SeededRandom& random) { return 3e-3 * normal(random); });
    EXPECT_NEAR(lag / simulated, 1, 0.02) << ranks;
  }
}

TEST(Jitter, ARareDisturbanceHoldsUpAllWhomItDidNotHit) {
  // 10 ms, once in a thousand calls.
  constexpr double kSize = 10e-3, kRate = 1e-3;
  const Jitter jitter{0, Seconds(kRate * kSize), kRate * (1 - kRate) * kSize * kSize};
  for (const std::int64_t ranks : {2, 4}) {
    const double simulated = simulated_lag(
        ranks, [](SeededRandom& random) { return random.uniform() < kRate ? kSize : 0.0; });
    EXPECT_NEAR(lag_of_last(jitter, ranks).value() / simulated, 1, 0.1) << ranks;
  }
}

TEST(Jitter, ManyCallsAddUpAndOneRankWaitsForNobody) {
  Jitter sum;
  for (int i = 0; i < 100; ++i) sum += {1e-6, Seconds(1e-4), 4e-6};
  EXPECT_NEAR(sum.variance_s2, 1e-4, 1e-12);
  EXPECT_NEAR(sum.tail.value(), 1e-2, 1e-12);
  EXPECT_NEAR(sum.tail_variance_s2, 4e-4, 1e-12);
  EXPECT_EQ(lag_of_last(sum, 1).value(), 0);
}

TEST(Jitter, FrequentDisturbancesAddUpLikeTheBodies) {
  // A hundred calls of 1 ms, each disturbed by 3 ms with probability 0.2.
  constexpr int kCalls = 100;
  constexpr double kBody = 0.2e-3, kSize = 3e-3, kRate = 0.2;
  Jitter sum;
  for (int i = 0; i < kCalls; ++i) {
    sum += {kBody * kBody, Seconds(kRate * kSize), kRate * (1 - kRate) * kSize * kSize};
  }
  for (const std::int64_t ranks : {2, 4, 8}) {
    const double simulated = simulated_lag(
        ranks,
        [](SeededRandom& random) {
          double time = 0;
          for (int i = 0; i < kCalls; ++i) {
            time += kBody * normal(random) + (random.uniform() < kRate ? kSize : 0);
          }
          return time;
        },
        4000);
    EXPECT_NEAR(lag_of_last(sum, ranks).value() / simulated, 1, 0.05) << ranks;
  }
}

}  // namespace
}  // namespace stepcast
