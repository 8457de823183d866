// SPDX-License-Identifier: Apache-2.0
#include "core/work_limits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "core/parallel.h"

namespace stepcast {
namespace {

TEST(WorkLimits, WithoutAScopeNothingStops) { EXPECT_NO_THROW(end_if_stopped()); }

TEST(WorkLimits, TheScopesAroundAreAskedToo) {
  bool outer = false, inner = false;
  const std::function<bool()> of_outer = [&] { return outer; }, of_inner = [&] { return inner; };
  const StopScope first(of_outer);
  {
    const StopScope second(of_inner);
    EXPECT_NO_THROW(end_if_stopped());
    inner = true;
    EXPECT_THROW(end_if_stopped(), Stopped);
  }
  EXPECT_NO_THROW(end_if_stopped());
  outer = true;
  const std::function<bool()> nothing;
  const StopScope third(nothing);
  EXPECT_THROW(end_if_stopped(), Stopped);
}

TEST(WorkLimits, HoldInTheThreadsOfAParallelCall) {
  std::atomic<int> done = 0;
  const std::function<bool()> stop = [&] { return done >= 10; };
  const StopScope scope(stop);
  const MemoryScope memory(123);
  EXPECT_THROW(run_in_parallel(4, 1000,
                               [&](std::size_t, std::size_t) {
                                 EXPECT_EQ(memory_limit(), 123);
                                 end_if_stopped();
                                 ++done;
                               }),
               Stopped);
  EXPECT_LT(done, 20);  // each of the other three threads may have been at work
}

TEST(WorkLimits, OfMemoryEndWithTheirScope) {
  {
    const MemoryScope scope(1);
    EXPECT_EQ(memory_limit(), 1);
  }
  EXPECT_EQ(memory_limit(), kUsualMemoryLimit);
}

// Forecasts of 40 of 100 bytes: two at a time. One of 1,000 begins when it is alone.
TEST(WorkLimits, WhatRunsAtATimeSharesTheMemory) {
  const MemoryScope scope(100);
  std::atomic<ByteCount> held = 0, most = 0;
  std::atomic<int> done = 0;
  run_in_parallel(4, 200, [&](std::size_t, std::size_t i) {
    const ByteCount bytes = i % 50 == 0 ? 1000 : 40;
    const HeldMemory mine(bytes);
    const ByteCount now = held += bytes;
    EXPECT_TRUE(now <= 100 || now == 1000) << now;
    for (ByteCount seen = most; seen < now && !most.compare_exchange_weak(seen, now);) continue;
    std::this_thread::yield();
    held -= bytes;
    ++done;
  });
  EXPECT_EQ(done, 200);
  EXPECT_EQ(most, 1000);
}

TEST(WorkLimits, AForecastWithinAForecastWaitsForNobody) {
  const MemoryScope scope(100);
  std::atomic<int> done = 0;
  const HeldMemory outer(90);
  run_in_parallel(3, 30, [&](std::size_t, std::size_t) {
    const HeldMemory inner(90);
    ++done;
  });
  EXPECT_EQ(done, 30);
}

TEST(WorkLimits, WhoeverWaitsForMemoryCanBeStopped) {
  const MemoryScope scope(100);
  std::atomic<bool> is_waiting = false;
  const std::function<bool()> stop = [&] { return is_waiting.load(); };
  std::atomic<int> stopped = 0;
  const CarriedLimits limits;
  const HeldMemory mine(90);
  std::jthread([&] {
    limits.enter();
    const StopScope until(stop);
    is_waiting = true;
    try {
      const HeldMemory more(90);
    } catch (const Stopped&) {
      ++stopped;
    }
  }).join();
  EXPECT_EQ(stopped, 1);
}

}  // namespace
}  // namespace stepcast
