// SPDX-License-Identifier: Apache-2.0
#include "economics/node_pool.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stepcast {
namespace {

// Erlang's B(servers, load): B(1, 1) = 1/2, B(2, 1) = 1/5, B(10, 10) = 0.2146 (his tables).
TEST(NodePool, WaitsByErlangsLossFormula) {
  const Seconds day(86400);
  const PerSecond one_a_day(1 / 86400.0);
  EXPECT_DOUBLE_EQ(waiting_share(one_a_day, day, 0), 0.5);
  EXPECT_DOUBLE_EQ(waiting_share(one_a_day, day, 1), 0.2);
  EXPECT_NEAR(waiting_share(10 * one_a_day, day, 9), 0.2146, 5e-5);
}

TEST(NodePool, NobodyWaitsForNodesThatComeAtOnce) {
  EXPECT_EQ(waiting_share(PerSecond(1), Seconds(), 0), 0);
  EXPECT_EQ(spares_for(PerSecond(1), Seconds(), 0.01), 0);
}

TEST(NodePool, TheFewestSparesAreEnoughAndOneLessIsNot) {
  const PerSecond losses(7.76 / 86400);  // Llama 3's
  const Seconds away(86400);
  const std::int64_t spares = spares_for(losses, away, 0.01);
  EXPECT_LE(waiting_share(losses, away, spares), 0.01);
  EXPECT_GT(waiting_share(losses, away, spares - 1), 0.01);
}

// A load of 1e12 nodes: each server takes away one, so that no count of spares is enough.
TEST(NodePool, NoMoreSparesAreLookedForThanARunMayHave) {
  EXPECT_EQ(spares_for(PerSecond(1), Seconds(1e12), 0.01), 1 << 20);
}

TEST(NodePool, AlwaysOneStragglerCostsItsSlowdown) {
  EXPECT_NEAR(straggler_share(PerSecond(1), Seconds(1e3), 0.25), 0.2, 1e-12);
  EXPECT_EQ(straggler_share(PerSecond(), Seconds(1e3), 0.25), 0);
}

}  // namespace
}  // namespace stepcast
