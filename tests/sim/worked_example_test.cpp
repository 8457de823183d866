// SPDX-License-Identifier: Apache-2.0
// The example with which sim/README.md opens, line by line.
#include <gtest/gtest.h>

#include "sim/engine.h"

namespace stepcast::sim {
namespace {

TEST(WorkedExample, IsThatOfTheReadme) {
  Workload work;
  const ResourceId link = work.add_resource(10);
  const StreamId compute = work.add_stream(), out = work.add_stream(), other = work.add_stream();
  const MemberSpec on_compute{compute, {}, {}}, on_out{out, {}, {}}, on_other{other, {}, {}};
  const Use use{link, 1};
  const TaskId first =
      work.add_task({.members = {&on_compute, 1}, .latency = duration(Seconds(1))});
  const TaskId sent = work.add_task({{&on_out, 1}, {}, 20, 10, 1, {&use, 1}});
  const TaskId beside = work.add_task({{&on_other, 1}, {}, 5, 10, 1, {&use, 1}});
  const TaskId last = work.add_task({.members = {&on_compute, 1}, .latency = duration(Seconds(1))});
  work.depend(sent, last);
  const Result<Replay> replayed = replay(work);
  ASSERT_TRUE(replayed.has_value());
  const auto end_ps = [&](TaskId task) { return replayed->tasks[task.index()].end.ps; };
  constexpr std::int64_t kSecond = 1'000'000'000'000;
  EXPECT_EQ(end_ps(first), kSecond);
  EXPECT_EQ(end_ps(beside), kSecond);        // 5 bytes at half of the link
  EXPECT_EQ(end_ps(sent), 5 * kSecond / 2);  // 5 bytes beside it, then 15 at all of the link
  EXPECT_EQ(end_ps(last), 7 * kSecond / 2);
}

}  // namespace
}  // namespace stepcast::sim
