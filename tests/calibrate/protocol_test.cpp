// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/protocol.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "calibrate/fake_clock.h"
#include "calibrate/undisturbed.h"

namespace stepcast {
namespace {

using testing::clean;
using testing::FakeClock;
using testing::without_warm_up;

TEST(Disturbed, OneForcedSwitchSpoilsAShortSampleAndNotALongOne) {
  // A switch may cost 50 us: more than 2 % of 1 ms, less than 2 % of 10 ms.
  const RejectionRule rule;
  EXPECT_EQ(disturbed({1e-3, 1, {.forced_switches = 1}}, rule), Disturbed::kForcedSwitch);
  EXPECT_EQ(disturbed({10e-3, 1, {.forced_switches = 1}}, rule), Disturbed::kNo);
  EXPECT_EQ(disturbed({10e-3, 1, {.forced_switches = 5}}, rule), Disturbed::kForcedSwitch);
}

TEST(Disturbed, WaitsCountBeyondTwoPerCentAndTheResolution) {
  RejectionRule rule;
  EXPECT_EQ(disturbed({10e-3, 1, {.waited_s = 0.3e-3}}, rule), Disturbed::kWaited);
  EXPECT_EQ(disturbed({10e-3, 1, {.waited_s = 0.1e-3}}, rule), Disturbed::kNo);
  EXPECT_EQ(disturbed({50e-6, 1, {.waited_s = 15e-6}}, rule), Disturbed::kNo);  // below 20 us
  rule.waiting = false;  // a collective waits for the others
  EXPECT_EQ(disturbed({10e-3, 1, {.waited_s = 9e-3}}, rule), Disturbed::kNo);
}

TEST(Disturbed, AThrottledProcessorIsTheFirstReason) {
  const RejectionRule rule;
  EXPECT_EQ(disturbed({1e-3, 1, {.forced_switches = 1, .throttle_events = 1}}, rule),
            Disturbed::kThrottled);
  EXPECT_EQ(disturbed({1e-3, 1, {.frequency_ratio = 0.85}}, rule), Disturbed::kThrottled);
  EXPECT_EQ(disturbed({1e-3, 1, {.frequency_ratio = 0.95}}, rule), Disturbed::kNo);
}

TEST(Sampler, KeepsTheReasonsApart) {
  MeasurementProtocol protocol = without_warm_up();
  protocol.min_samples = 20;
  Sampler sampler(protocol);
  sampler.add({1e-3, 1, {.forced_switches = 1}});
  sampler.add({1e-3, 1, {.forced_switches = 2}});
  sampler.add({1e-3, 1, {.waited_s = 0.5e-3}});
  sampler.add({1e-3, 1, {.throttle_events = 1}});
  // Median 1.00 ms, MAD 0.01 ms: the limit is 1.00 + 5 * 1.4826 * 0.01 = 1.074 ms.
  for (const double ms : {0.98, 0.99, 0.99, 1.00, 1.00, 1.01, 1.01, 1.07, 1.2}) {
    sampler.add(clean(ms * 1e-3));
  }
  const Measurement out = sampler.result();
  EXPECT_EQ(out.rejected, (Rejected{2, 1, 1, 1}));
  EXPECT_EQ(out.n, 8);
  EXPECT_EQ(out.stopped, Stop::kNotYet);
  EXPECT_NEAR(out.median_s, 1.00e-3, 1e-12);
  // Eight samples: the extremes bound the median.
  ASSERT_TRUE(out.interval_s);
  EXPECT_NEAR(out.interval_s->low, 0.98e-3, 1e-12);
  EXPECT_NEAR(out.interval_s->high, 1.07e-3, 1e-12);
}

TEST(Sampler, EqualSamplesLeaveTheOutlierRuleNothingToMeasureWith) {
  MeasurementProtocol protocol = without_warm_up();
  protocol.min_samples = 20;
  Sampler sampler(protocol);
  for (int i = 0; i < 9; ++i) sampler.add(clean(1e-3));
  sampler.add(clean(1.001e-3));
  EXPECT_EQ(sampler.result().rejected.total(), 0);
}

TEST(Sampler, WarmUpEndsWhenBothCountAndTimeAreReached) {
  MeasurementProtocol protocol;
  protocol.warm_up_samples = 3;
  protocol.warm_up_s = 0.125;
  Sampler slow(protocol);  // 3 samples of 1/16 s: the count comes last
  for (int i = 0; i < 4; ++i) slow.add(clean(0.0625));
  EXPECT_EQ(slow.result().n, 1);
  Sampler fast(protocol);  // 8 samples of 1/64 s: the time comes last
  for (int i = 0; i < 10; ++i) fast.add(clean(0.015625));
  EXPECT_EQ(fast.result().n, 2);
}

TEST(Sampler, StopsAtOnceWhenTheMedianIsKnown) {
  Sampler sampler(without_warm_up());
  int added = 0;
  while (!sampler.enough()) {
    sampler.add(clean(added % 2 == 0 ? 1.000e-3 : 1.001e-3));
    ++added;
  }
  EXPECT_EQ(added, 10);  // min_samples
  EXPECT_EQ(sampler.result().stopped, Stop::kPrecise);
}

TEST(Sampler, TheBudgetEndsAPointThatStaysNoisy) {
  // Alternating 10 and 20 ms: the interval is 10 to 20 for ever. Budget 0.5 s = 33 samples.
  Sampler sampler(without_warm_up());
  int added = 0;
  while (!sampler.enough()) sampler.add(clean(added++ % 2 == 0 ? 10e-3 : 20e-3));
  EXPECT_EQ(sampler.result().stopped, Stop::kBudget);
  EXPECT_EQ(added, 34);  // 17 * 30 ms = 0.51 s
}

TEST(Sampler, TheMeanIsOfAllSamplesAfterTheWarmUpTheMedianOfTheUndisturbed) {
  MeasurementProtocol protocol = without_warm_up();
  protocol.warm_up_samples = 1;
  Sampler sampler(protocol);
  sampler.add(clean(5));  // cold
  sampler.add({4e-3, 1, {.waited_s = 3e-3}});
  while (!sampler.enough()) sampler.add(clean(1e-3));
  const auto quiet = static_cast<double>(sampler.result().n);
  for (int i = 0; i < 10; ++i) sampler.add(clean(7e-3));
  const Measurement out = sampler.result();
  EXPECT_EQ(out.median_s, 1e-3);
  EXPECT_EQ(out.n, static_cast<std::int64_t>(quiet));  // it had enough
  EXPECT_NEAR(out.mean_s, (4e-3 + quiet * 1e-3 + 10 * 7e-3) / (quiet + 11), 1e-12);
}

TEST(Sampler, HalvesTellWhatCameAndWent) {
  const auto halves = [](const std::vector<double>& times) {
    MeasurementProtocol protocol;
    protocol.warm_up_samples = 0;
    protocol.warm_up_s = 0;
    Sampler sampler(protocol);
    for (const double seconds : times) {
      Sample sample;
      sample.seconds = seconds;
      sampler.add(sample);
    }
    return sampler.result().halves;
  };
  EXPECT_DOUBLE_EQ(halves({1, 3, 3, 1}), 1);  // noise repeats
  EXPECT_DOUBLE_EQ(halves({6, 6, 1, 1}), 6);
  EXPECT_DOUBLE_EQ(halves({1, 1, 1, 3}), 2);
  EXPECT_DOUBLE_EQ(halves({1}), 1);
}

TEST(Sampler, TheFewestSamplesGoBeforeTheBudget) {
  Sampler sampler(without_warm_up());
  int added = 0;
  while (!sampler.enough()) sampler.add(clean(added++ % 2 == 0 ? 1 : 2));  // seconds
  EXPECT_EQ(added, 10);
  EXPECT_EQ(sampler.result().stopped, Stop::kBudget);
}

TEST(Sampler, TheNumberOfSamplesIsLimited) {
  MeasurementProtocol protocol = without_warm_up();
  protocol.max_samples = 40;
  Sampler sampler(protocol);
  int added = 0;
  while (!sampler.enough()) sampler.add(clean(added++ % 2 == 0 ? 10e-6 : 20e-6));
  EXPECT_EQ(added, 40);
  EXPECT_EQ(sampler.result().stopped, Stop::kSampleLimit);
}

TEST(Sampler, GivesUpOnAMachineThatIsNeverQuiet) {
  // Every second sample of 0.1 s is disturbed until the tenth try, all after it: 5 clean ones. The
  // budget is spent, and 3 * 10 attempts are made.
  Sampler sampler(without_warm_up());
  int added = 0;
  while (!sampler.enough()) {
    const bool quiet = added < 10 && added % 2 == 0;
    sampler.add({0.1, 1, {.waited_s = quiet ? 0 : 0.05}});
    ++added;
  }
  EXPECT_EQ(added, 30);
  const Measurement out = sampler.result();
  EXPECT_EQ(out.stopped, Stop::kDisturbed);
  EXPECT_EQ(out.n, 5);
  EXPECT_EQ(out.rejected.waited, 25);
  EXPECT_FALSE(out.interval_s);  // five samples bound no median
  EXPECT_NEAR(out.median_s, 0.1, 1e-12);
}

TEST(Sampler, PercentilesAreThoseOfTheSamplesBehindTheMedian) {
  MeasurementProtocol protocol = without_warm_up();
  protocol.min_samples = protocol.max_samples = 11;
  Sampler sampler(protocol);
  for (int i = 0; i <= 10; ++i) sampler.add({100e-3 + i * 1e-3, 10, {}});  // ten calls each
  const Measurement out = sampler.result();
  EXPECT_NEAR(out.p10_s, 10.1e-3, 1e-12);
  EXPECT_NEAR(out.median_s, 10.5e-3, 1e-12);
  EXPECT_NEAR(out.p90_s, 10.9e-3, 1e-12);
  EXPECT_EQ(out.calls_per_sample, 10);
}

TEST(Measure, SamplesUntilTheMedianIsKnown) {
  FakeClock clock;
  int calls = 0;
  const auto out = measure([&] { clock.work(++calls % 2 == 0 ? 1.00e-3 : 1.01e-3); }, {}, clock);
  ASSERT_TRUE(out) << to_string(out.error());
  EXPECT_EQ(out->stopped, Stop::kPrecise);
  EXPECT_EQ(out->n, 10);
  EXPECT_EQ(out->calls_per_sample, 1);
  // One call to see how long it takes, 20 ms of warm-up, and the samples.
  EXPECT_EQ(calls, 1 + 20 + 10);
}

TEST(Measure, RepeatsWhatIsTooShortForTheClock) {
  FakeClock clock;
  const auto out = measure([&] { clock.work(100e-9); }, {}, clock);
  ASSERT_TRUE(out);
  EXPECT_GE(static_cast<double>(out->calls_per_sample) * 100e-9, 20e-6 * (1 - 1e-9));
  EXPECT_LE(out->calls_per_sample, 300);
  EXPECT_NEAR(out->median_s, 100e-9, 1e-15);
}

TEST(Measure, LeavesOutWhatWasDisturbed) {
  // Every fourth call loses its processor for 5 ms: without rejection the p90 would be 6 ms.
  FakeClock clock;
  int calls = 0;
  const auto out = measure(
      [&] {
        clock.work(++calls % 2 == 0 ? 1.000e-3 : 1.001e-3);
        if (calls % 4 == 0) {
          clock.force_switch();
          clock.wait(5e-3);
        }
      },
      {}, clock);
  ASSERT_TRUE(out);
  EXPECT_LT(out->p90_s, 1.01e-3);
  EXPECT_GE(out->rejected.forced_switch, 2);
  EXPECT_EQ(out->rejected.waited, 0);
}

TEST(Measure, AMachineThatDisturbsEverySampleIsAnError) {
  FakeClock clock;
  const auto out = measure(
      [&] {
        clock.work(1e-3);
        clock.force_switch();
      },
      {}, clock);
  ASSERT_FALSE(out);
  const std::string text = to_string(out.error());
  EXPECT_NE(text.find("samples were disturbed: "), std::string::npos) << text;
  EXPECT_NE(text.find("by forced context switches, 0 by waits"), std::string::npos) << text;
}

TEST(Measure, RealTimesComeOutOfTheRealClock) {
  ThreadClock clock;
  MeasurementProtocol protocol;
  protocol.budget_s = 0.05;
  // A machine that never rests counts too.
  protocol.rejection.fraction = std::numeric_limits<double>::infinity();
  protocol.rejection.frequency_ratio = 0;
  protocol.rejection.waiting = false;
  volatile double sink = 0;
  const auto out = measure(
      [&] {
        for (int i = 1; i < 20000; ++i) sink = sink + std::sqrt(static_cast<double>(i));
      },
      protocol, clock);
  ASSERT_TRUE(out) << to_string(out.error());
  EXPECT_GT(out->median_s, 0);
  EXPECT_LE(out->p10_s, out->median_s);
  EXPECT_LE(out->median_s, out->p90_s);
}

}  // namespace
}  // namespace stepcast
