// SPDX-License-Identifier: Apache-2.0
#include "sim/max_min.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "solve_max_min.h"

namespace stepcast::sim {
namespace {

struct Claim {
  double bound;
  double share;
  std::vector<Use> uses;
};

struct System {
  std::vector<Claim> claims;
  std::vector<double> capacities;
};

std::vector<double> solve(const System& system) {
  std::vector<Activity> activities;
  for (const Claim& claim : system.claims) {
    activities.push_back({claim.bound, claim.share, claim.uses});
  }
  return solve_max_min(activities, system.capacities);
}

const ResourceId kA(0);
const ResourceId kB(1);

TEST(MaxMin, TwoFlowsOnOneLinkEachGetHalf) {
  // x + y <= 10, nothing else binds: x = y = 5.
  EXPECT_EQ(solve({{{100, 1, {{kA, 1}}}, {100, 1, {{kA, 1}}}}, {10}}), (std::vector<double>{5, 5}));
}

TEST(MaxMin, RatesAreInProportionToShares) {
  // x/1 = y/3, x + y = 8: x = 2, y = 6.
  EXPECT_EQ(solve({{{100, 1, {{kA, 1}}}, {100, 3, {{kA, 1}}}}, {8}}), (std::vector<double>{2, 6}));
}

TEST(MaxMin, WeightsAreTakenFromTheCapacityAndNotFromTheRate) {
  // x = y, 1 x + 3 y = 8: x = y = 2.
  EXPECT_EQ(solve({{{100, 1, {{kA, 1}}}, {100, 1, {{kA, 3}}}}, {8}}), (std::vector<double>{2, 2}));
}

TEST(MaxMin, WhatABoundedActivityLeavesGoesToTheOthers) {
  // x <= 2, y = z, x + y + z = 12: y = z = 5.
  EXPECT_EQ(solve({{{2, 1, {{kA, 1}}}, {100, 1, {{kA, 1}}}, {100, 1, {{kA, 1}}}}, {12}}),
            (std::vector<double>{2, 5, 5}));
}

TEST(MaxMin, ALongFlowIsHeldByItsTightestLink) {
  // On A: x + z <= 10. On B: y + z <= 4. B fills at 2: y = z = 2; then x = 10 - 2 = 8.
  EXPECT_EQ(
      solve({{{100, 1, {{kA, 1}}}, {100, 1, {{kB, 1}}}, {100, 1, {{kA, 1}, {kB, 1}}}}, {10, 4}}),
      (std::vector<double>{8, 2, 2}));
}

TEST(MaxMin, AnActivityWithoutUsesRunsAtItsBound) {
  EXPECT_EQ(solve({{{7, 2, {}}}, {1}}), (std::vector<double>{7}));
}

TEST(MaxMin, AResourceWithoutCapacityStopsItsUsersAlone) {
  EXPECT_EQ(solve({{{5, 1, {{kA, 1}, {kB, 1}}}, {5, 1, {{kB, 1}}}}, {0, 3}}),
            (std::vector<double>{0, 3}));
}

TEST(MaxMin, UsingAResourceTwiceAddsTheWeights) {
  // (1 + 1) x <= 6.
  EXPECT_EQ(solve({{{100, 1, {{kA, 1}, {kA, 1}}}}, {6}}), (std::vector<double>{3}));
}

System random_system(std::mt19937_64& random) {
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  System system;
  const int resources = 1 + static_cast<int>(random() % 6);
  for (int r = 0; r < resources; ++r) system.capacities.push_back(uniform(1, 10));
  const int claims = 1 + static_cast<int>(random() % 12);
  for (int c = 0; c < claims; ++c) {
    Claim claim{random() % 3 == 0 ? uniform(0.01, 1) : uniform(1, 100), uniform(0.5, 4), {}};
    for (int r = 0; r < resources; ++r) {
      if (random() % 3 == 0) claim.uses.push_back({ResourceId(r), uniform(0.1, 3)});
    }
    system.claims.push_back(claim);
  }
  return system;
}

double load(const System& system, const std::vector<double>& rates, ResourceId resource) {
  double sum = 0;
  for (std::size_t c = 0; c < rates.size(); ++c) {
    for (const Use& use : system.claims[c].uses) {
      if (use.resource == resource) sum += use.weight * rates[c];
    }
  }
  return sum;
}

TEST(MaxMin, EveryActivityOfARandomSystemIsAtItsBoundOrHasABottleneck) {
  // The certificate of max-min fairness: a saturated resource on which nobody has a higher x/s.
  std::mt19937_64 random(11);
  for (int trial = 0; trial < 500; ++trial) {
    const System system = random_system(random);
    const std::vector<double> rates = solve(system);
    for (std::size_t r = 0; r < system.capacities.size(); ++r) {
      ASSERT_LE(load(system, rates, ResourceId(r)), system.capacities[r] * (1 + 1e-12));
    }
    for (std::size_t c = 0; c < rates.size(); ++c) {
      const Claim& claim = system.claims[c];
      ASSERT_LE(rates[c], claim.bound);
      if (rates[c] == claim.bound) continue;
      const bool has_bottleneck = std::any_of(claim.uses.begin(), claim.uses.end(), [&](Use use) {
        if (load(system, rates, use.resource) <
            system.capacities[use.resource.index()] * (1 - 1e-12)) {
          return false;
        }
        for (std::size_t d = 0; d < rates.size(); ++d) {
          for (const Use& other : system.claims[d].uses) {
            if (other.resource != use.resource) continue;
            if (rates[d] / system.claims[d].share > rates[c] / claim.share * (1 + 1e-12)) {
              return false;
            }
          }
        }
        return true;
      });
      ASSERT_TRUE(has_bottleneck) << "trial " << trial << ", activity " << c;
    }
  }
}

// Raises all unsettled activities in small exact steps of the level: the definition, read naively.
std::vector<double> solve_naively(const System& system) {
  std::vector<double> rates(system.claims.size(), 0);
  std::vector<bool> settled(rates.size(), false);
  while (std::find(settled.begin(), settled.end(), false) != settled.end()) {
    std::vector<double> level(rates.size());
    double lowest = std::numeric_limits<double>::infinity();
    for (std::size_t c = 0; c < rates.size(); ++c) {
      if (settled[c]) continue;
      level[c] = system.claims[c].bound / system.claims[c].share;
      for (const Use& mine : system.claims[c].uses) {
        double left = system.capacities[mine.resource.index()];
        double rising = 0;
        for (std::size_t d = 0; d < rates.size(); ++d) {
          for (const Use& use : system.claims[d].uses) {
            if (use.resource != mine.resource) continue;
            if (settled[d]) left -= use.weight * rates[d];
            if (!settled[d]) rising += use.weight * system.claims[d].share;
          }
        }
        level[c] = std::min(level[c], left / rising);
      }
      lowest = std::min(lowest, level[c]);
    }
    for (std::size_t c = 0; c < rates.size(); ++c) {
      if (settled[c] || level[c] > lowest * (1 + 1e-13)) continue;
      rates[c] = lowest * system.claims[c].share;
      settled[c] = true;
    }
  }
  return rates;
}

TEST(MaxMin, AgreesWithANaiveSolver) {
  std::mt19937_64 random(12);
  for (int trial = 0; trial < 1000; ++trial) {
    const System system = random_system(random);
    const std::vector<double> rates = solve(system);
    const std::vector<double> naive = solve_naively(system);
    for (std::size_t c = 0; c < rates.size(); ++c) {
      ASSERT_NEAR(rates[c], naive[c], 1e-11 * naive[c]) << "trial " << trial;
    }
  }
}

TEST(MaxMin, ThePermutedSystemHasTheSameRatesToTheLastBit) {
  std::mt19937_64 random(13);
  for (int trial = 0; trial < 200; ++trial) {
    const System system = random_system(random);
    std::vector<int> new_resource(system.capacities.size());
    std::iota(new_resource.begin(), new_resource.end(), 0);
    std::shuffle(new_resource.begin(), new_resource.end(), random);
    std::vector<std::size_t> order(system.claims.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random);

    System permuted;
    permuted.capacities.resize(system.capacities.size());
    for (std::size_t r = 0; r < new_resource.size(); ++r) {
      permuted.capacities[static_cast<std::size_t>(new_resource[r])] = system.capacities[r];
    }
    for (const std::size_t c : order) {
      Claim claim = system.claims[c];
      std::shuffle(claim.uses.begin(), claim.uses.end(), random);
      for (Use& use : claim.uses) use.resource = ResourceId(new_resource[use.resource.index()]);
      permuted.claims.push_back(claim);
    }
    const std::vector<double> rates = solve(system);
    const std::vector<double> permuted_rates = solve(permuted);
    for (std::size_t i = 0; i < order.size(); ++i) {
      ASSERT_EQ(permuted_rates[i], rates[order[i]]) << "trial " << trial;
    }
  }
}

}  // namespace
}  // namespace stepcast::sim
