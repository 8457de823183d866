// SPDX-License-Identifier: Apache-2.0
#include "core/work_limits.h"

#include <gtest/gtest.h>

#include <atomic>

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

}  // namespace
}  // namespace stepcast
