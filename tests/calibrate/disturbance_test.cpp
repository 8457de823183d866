// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/disturbance.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <time.h>

#include <cmath>
#include <string>

#include "calibrate/fake_clock.h"
#include "core/temporary_folder.h"

namespace stepcast {
namespace {

using testing::FakeClock;
using testing::TemporaryFolder;

TEST(SampleTimer, TellsWorkFromWaiting) {
  FakeClock clock;
  SampleTimer timer(clock);
  clock.work(3e-3);
  clock.wait(1e-3);
  clock.force_switch();
  const Sample sample = timer.stop(5);
  EXPECT_NEAR(sample.seconds, 4e-3, 1e-12);
  EXPECT_NEAR(sample.disturbance.waited_s, 1e-3, 1e-12);
  EXPECT_EQ(sample.disturbance.forced_switches, 1);
  EXPECT_EQ(sample.disturbance.frequency_ratio, 1);  // nobody says
  EXPECT_EQ(sample.calls, 5);
}

TEST(SampleTimer, ThrottlingOfAnotherProcessorIsNotOfThisSample) {
  FakeClock clock;
  clock.set_state({0, 10, 3e9});
  SampleTimer moved(clock);
  clock.set_state({1, 25, 2e9});
  const Sample elsewhere = moved.stop();
  EXPECT_EQ(elsewhere.disturbance.throttle_events, 0);
  EXPECT_EQ(elsewhere.disturbance.frequency_ratio, 1);

  SampleTimer stayed(clock);
  clock.set_state({1, 27, 1.5e9});
  const Sample here = stayed.stop();
  EXPECT_EQ(here.disturbance.throttle_events, 2);
  EXPECT_DOUBLE_EQ(here.disturbance.frequency_ratio, 0.75);
}

TEST(SampleTimer, TheBaseFrequencyIsTheReferenceWhereItIsKnown) {
  // A fall from turbo to base is no throttling.
  FakeClock clock;
  clock.base_hz = 2.5e9;
  clock.set_state({0, 0, 4e9});
  SampleTimer timer(clock);
  clock.set_state({0, 0, 2.5e9});
  EXPECT_DOUBLE_EQ(timer.stop().disturbance.frequency_ratio, 1);
}

TEST(ThreadClock, ChargesWhatTheThreadComputes) {
  ThreadClock clock;
  const double start = clock.now_s();
  const double before = clock.accounting().thread_cpu_s;
  double sum = 0;
  for (int i = 1; i < 2000000; ++i) sum += std::sqrt(static_cast<double>(i));
  EXPECT_GT(sum, 0);
  const double charged = clock.accounting().thread_cpu_s - before;
  EXPECT_GT(charged, 0);
  EXPECT_LE(charged, clock.now_s() - start + 1e-3);  // one thread: at most the wall's time
}

TEST(ThreadClock, SleepIsTimeWithoutAProcessor) {
  ThreadClock clock;
  SampleTimer timer(clock);
  timespec pause{0, 5000000};
  ASSERT_EQ(::nanosleep(&pause, nullptr), 0);
  const Sample sample = timer.stop();
  EXPECT_GE(sample.seconds, 5e-3);
  EXPECT_GT(sample.disturbance.waited_s, 4e-3);
  EXPECT_LE(sample.disturbance.waited_s, sample.seconds);
}

TEST(ThreadClock, ReadsFrequencyAndThrottlingWhereTheKernelGivesThem) {
  const TemporaryFolder folder;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (processor > 0 && processor >= static_cast<int>(::sysconf(_SC_NPROCESSORS_CONF))) break;
    const std::string cpu = "cpu" + std::to_string(processor) + "/";
    folder.write(cpu + "cpufreq/scaling_cur_freq", "3100000\n");
    folder.write(cpu + "cpufreq/base_frequency", "2400000\n");
    folder.write(cpu + "thermal_throttle/core_throttle_count", "7\n");
    folder.write(cpu + "thermal_throttle/package_throttle_count", "4\n");
  }
  ThreadClock clock(folder / "");
  const ProcessorState state = clock.processor();
  EXPECT_EQ(state.frequency_hz, 3.1e9);
  EXPECT_EQ(state.throttle_events, 11);
  EXPECT_EQ(clock.base_frequency_hz(), 2.4e9);
}

TEST(ThreadClock, AMachineThatSaysNothingIsNotThrottled) {
  const TemporaryFolder folder;
  ThreadClock clock(folder / "");
  SampleTimer timer(clock);
  const Sample sample = timer.stop();
  EXPECT_FALSE(clock.processor().frequency_hz);
  EXPECT_EQ(sample.disturbance.throttle_events, 0);
  EXPECT_EQ(sample.disturbance.frequency_ratio, 1);
}

}  // namespace
}  // namespace stepcast
