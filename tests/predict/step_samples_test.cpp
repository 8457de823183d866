// SPDX-License-Identifier: Apache-2.0
// Samples of steps against closed forms: ranks that meet once wait for the largest of their times.
#include "predict/step_samples.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <string>

#include "operation/signature.h"
#include "predict/prediction.h"
#include "predict/pricing.h"
#include "priced_step.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;
using testing::source_folders;

// E[max of n standard normals] = integral of x n phi(x) Phi(x)^(n-1), by Simpson's rule.
double mean_of_largest(int n) {
  constexpr int kParts = 20'000;
  constexpr double kEnd = 12;
  const double h = 2 * kEnd / kParts;
  double sum = 0;
  for (int i = 0; i <= kParts; ++i) {
    const double x = -kEnd + h * i;
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    const double below = 0.5 * std::erfc(-x / std::numbers::sqrt2);
    const double weight = i == 0 || i == kParts ? 1 : i % 2 == 1 ? 4 : 2;
    sum += weight * x * n * density * std::pow(below, n - 1);
  }
  return sum * h / 3;
}

// Replicas of a model on nodes of their own, which meet for their gradients alone.
GptCase replicas(int dp, const std::string& cluster) {
  GptCase c;
  c.layers = 4;
  c.hidden = 2048;
  c.heads = 16;
  c.sequence = 2048;
  c.dp = dp;
  c.global_batch = dp;
  c.cluster = R"("base": "dgx-a100-80g")" + cluster;
  return c;
}

Prediction sampled(const GptCase& c, std::int64_t count, std::uint64_t seed = 1, int threads = 2) {
  PredictOptions options;
  options.samples = {count, seed, threads};
  auto out = predict(gpt(c), source_folders(), options);
  EXPECT_TRUE(out.has_value()) << to_string(out.error());
  return out ? std::move(*out) : Prediction{};
}

// Times that a rank computes in the runs of a step: their sum, and the root of that of their
// squares.
struct Computed {
  double sum = 0, root = 0;
};
Computed computed(const GptCase& c) {
  const Scenario scenario = gpt(c);
  const auto pricing = make_pricing(scenario, source_folders()).value();
  const testing::PricedStep step(scenario, *pricing);
  Computed out;
  for (const Instruction& what : step.costs.role(0).instructions) {
    if (!what.is_run()) continue;
    const RunCost& cost = step.costs.run(0, what);
    const double time = (cost.compute + cost.recompute + cost.optimizer).value();
    out.sum += time;
    out.root += time * time;
  }
  out.root = std::sqrt(out.root);
  return out;
}

TEST(Samples, OfDevicesOfSeveralSpeedsHaveTheMeanOfTheLargestOfNormals) {
  constexpr double kSpread = 0.04;
  for (const int n : {2, 8, 32}) {
    const Prediction quiet = sampled(replicas(n, ""), 0);
    const GptCase c = replicas(n, R"(, "spread": 0.04)");
    const Prediction varied = sampled(c, 1000);
    const double excess = mean_of_largest(n) * kSpread * computed(c).sum;
    const double expected = quiet.step_time.value() + excess;
    EXPECT_NEAR(varied.samples.mean.value(), expected, 0.01 * expected) << n;
    // The largest of n has a deviation of at most one of them, and the mean of 1,000 a 32nd of it.
    EXPECT_NEAR(varied.samples.mean.value() - quiet.step_time.value(), excess,
                4 * kSpread * computed(c).sum / std::sqrt(1000.0))
        << n;
    EXPECT_LT(varied.samples.p5, varied.samples.p50);
    EXPECT_LT(varied.samples.p50, varied.samples.p95);
  }
}

// Passes and updates are drawn by themselves, so that their variances add up.
TEST(Samples, OfJitterHaveTheMeanOfTheLargestOfSums) {
  constexpr double kJitter = 0.1;
  for (const int n : {4, 16}) {
    const Prediction quiet = sampled(replicas(n, ""), 0);
    const GptCase c = replicas(n, R"(, "jitter": 0.1)");
    const Prediction varied = sampled(c, 1000);
    const double deviation = kJitter * computed(c).root;
    const double expected = quiet.step_time.value() + mean_of_largest(n) * deviation;
    EXPECT_NEAR(varied.samples.mean.value(), expected, 0.01 * expected) << n;
    EXPECT_NEAR(varied.samples.mean.value(), expected, 5 * deviation / std::sqrt(1000.0)) << n;
  }
}

// A profile that has measured how kernels scatter: each by a tenth of a millisecond, and rarely by
// much more. Ranks that meet once wait for the largest of the sums.
TEST(Samples, OfMeasuredScatterHaveItsMeanAndVariance) {
  const GptCase c = replicas(8, "");
  const Scenario scenario = gpt(c);
  const auto pricing = make_pricing(scenario, source_folders()).value();
  Profile profile = pricing->kernels.profile();
  std::size_t kernels = 0;
  {
    const testing::PricedStep step(scenario, *pricing);
    for (const Instruction& what : step.costs.role(0).instructions) {
      if (!what.is_run()) continue;
      for (const auto* block : step.costs.blocks(0, what)) {
        for (const PricedOperation& one : block->operations) {
          if (!pricing->kernels.runs(*one.operation)) continue;
          const Seconds time = pricing->kernels.price(*one.operation).time;
          profile.exact[signature(*one.operation)] = {time, {1e-8, Seconds(), 0}};
          ++kernels;
        }
      }
    }
  }
  const Accelerator device = scenario.cluster.spec.accelerator;
  const auto sampled_with = [&](const Profile& measured) {
    pricing->kernels =
        KernelCosts(device, measured, KernelStyle::kInSteps, scenario.training.framework);
    PredictOptions options;
    options.samples = {1000, 3, 2};
    return predict(scenario, *pricing, options).value();
  };
  const Prediction normal = sampled_with(profile);
  const double deviation = 1e-4 * std::sqrt(static_cast<double>(kernels));
  const double step = normal.step_time.value();
  EXPECT_NEAR(normal.samples.mean.value(), step + mean_of_largest(8) * deviation, 0.01 * step);
  EXPECT_NEAR(normal.samples.mean.value() - step, mean_of_largest(8) * deviation,
              6 * deviation / std::sqrt(1000.0));
  // Rare disturbances of some milliseconds: the mean of a rank's own is in its price, and those of
  // the seven others cost the step as much each.
  for (auto& [name, time] : profile.exact) time.jitter = {0, Seconds(5e-8), 2.5e-10};
  const Prediction disturbed = sampled_with(profile);
  const double cost = 7 * 5e-8 * static_cast<double>(kernels);
  EXPECT_NEAR(disturbed.samples.mean.value() - step, cost, 0.4 * cost);
}

// A group that meets in every layer goes at the pace of its slowest.
TEST(Samples, OfTensorParallelRanksHaveThePaceOfTheirSlowest) {
  GptCase c = replicas(1, R"(, "spread": 0.05)");
  c.tp = 4;
  c.layers = 2;
  c.hidden = 8192;  // the host is ahead of such kernels
  c.heads = 64;
  const Prediction varied = sampled(c, 1000);
  GptCase same = c;
  same.cluster = R"("base": "dgx-a100-80g")";
  const Prediction quiet = sampled(same, 0);
  const double excess = mean_of_largest(4) * 0.05 * computed(c).sum;
  EXPECT_NEAR(varied.samples.mean.value(), quiet.step_time.value() + excess, 0.1 * excess);
}

TEST(Samples, AreTheSameForAnyNumberOfThreads) {
  GptCase c = replicas(4, R"(, "jitter": 0.05, "spread": 0.02, "fail": "node0/gpu2=90%")");
  c.pp = 2;
  c.global_batch = 16;
  const Prediction one = sampled(c, 50, 7, 1), three = sampled(c, 50, 7, 3);
  EXPECT_EQ(one.samples.mean, three.samples.mean);
  EXPECT_EQ(one.samples.p95, three.samples.p95);
  ASSERT_EQ(one.samples.ranks.size(), three.samples.ranks.size());
  for (std::size_t i = 0; i < one.samples.ranks.size(); ++i) {
    EXPECT_EQ(one.samples.ranks[i].place, three.samples.ranks[i].place);
    EXPECT_EQ(one.samples.ranks[i].samples, three.samples.ranks[i].samples);
    EXPECT_EQ(one.samples.ranks[i].cost, three.samples.ranks[i].cost);
  }
  EXPECT_NE(one.samples.mean, sampled(c, 50, 8, 1).samples.mean);
  // The forecast beside them is that of the quiet machine.
  EXPECT_EQ(one.step_time, sampled(c, 0).step_time);
}

TEST(Samples, OfASlowGpuSayWhatItCosts) {
  const GptCase c = replicas(4, R"(, "fail": "node0/gpu2=80%")");
  const Prediction slow = sampled(c, 3);
  const Prediction whole = sampled(replicas(4, ""), 3);
  const StepSamples& samples = slow.samples;
  EXPECT_EQ(samples.p5, samples.p95);
  EXPECT_NEAR(samples.mean.value(), slow.step_time.value(), 1e-6 * slow.step_time.value());
  EXPECT_NEAR(whole.samples.mean.value(), whole.step_time.value(), 1e-6 * whole.step_time.value());
  ASSERT_FALSE(samples.ranks.empty());
  EXPECT_EQ(samples.ranks.front().place, 2);
  EXPECT_EQ(samples.ranks.front().samples, 3);
  const double cost = (slow.step_time - whole.step_time).value();
  EXPECT_NEAR(samples.ranks.front().cost.value(), cost, 0.02 * cost);
  for (const SampleShare& share : whole.samples.ranks) EXPECT_NEAR(share.cost.value(), 0, 1e-12);
}

// All that ranks cost on the path makes the samples longer.
TEST(Samples, CostsOfAllRanksAddUpToWhatTheStepTakesLonger) {
  GptCase c = replicas(2, R"(, "jitter": 0.05, "spread": 0.03)");
  c.pp = 4;
  c.global_batch = 16;
  const Prediction varied = sampled(c, 200);
  GptCase same = c;
  same.cluster = R"("base": "dgx-a100-80g")";
  const double more = varied.samples.mean.value() - sampled(same, 0).step_time.value();
  double costs = 0;
  for (const SampleShare& share : varied.samples.ranks) costs += share.cost.value();
  EXPECT_GT(more, 0);
  EXPECT_NEAR(costs, more, 0.25 * more);
}

}  // namespace
}  // namespace stepcast
