// SPDX-License-Identifier: Apache-2.0
#include "sim/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace stepcast::sim {
namespace {

TEST(EventQueue, GivesTheEarliestTaskFirst) {
  EventQueue queue(3);
  queue.schedule(0, 30);
  queue.schedule(1, 10);
  queue.schedule(2, 20);
  EXPECT_EQ(queue.next_time(), 10);
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.pop(), 2);
  EXPECT_EQ(queue.pop(), 0);
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, MovesATaskThatIsScheduledAgain) {
  EventQueue queue(2);
  queue.schedule(0, 10);
  queue.schedule(1, 20);
  queue.schedule(0, 30);
  EXPECT_EQ(queue.pop(), 1);
  queue.schedule(0, 5);
  EXPECT_EQ(queue.next_time(), 5);
  EXPECT_EQ(queue.pop(), 0);
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, AgreesWithASortedMapUnderRandomUse) {
  std::mt19937 random(7);
  constexpr int kTasks = 50;
  EventQueue queue(kTasks);
  std::map<int, std::int64_t> times;
  const auto earliest = [&] {
    return std::min_element(times.begin(), times.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; });
  };
  for (int step = 0; step < 20'000; ++step) {
    const int task = static_cast<int>(random() % kTasks);
    switch (random() % 4) {
      case 0:
        queue.cancel(task);
        times.erase(task);
        break;
      case 1:
        if (!queue.empty()) {
          ASSERT_EQ(queue.next_time(), earliest()->second);
          const int popped = queue.pop();
          ASSERT_EQ(times.at(popped), earliest()->second);
          times.erase(popped);
        }
        break;
      default:
        times[task] = static_cast<std::int64_t>(random() % 100);
        queue.schedule(task, times[task]);
    }
    ASSERT_EQ(queue.empty(), times.empty());
  }
}

}  // namespace
}  // namespace stepcast::sim
