// SPDX-License-Identifier: Apache-2.0
// A workload keeps once what many alike tasks do, and replays each as if it had its own.
#include "sim/workload.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/engine.h"

namespace stepcast::sim {
namespace {

TEST(Workload, AlikeTasksKeepWhatTheyDoOnce) {
  Workload work;
  const ResourceId link = work.add_resource(10);
  const std::array uses{Use{link, 1}, Use{work.add_resource(10), 2}};
  const StreamId one = work.add_stream(), other = work.add_stream();
  std::vector<TaskId> sent;
  for (int i = 0; i < 100; ++i) {
    for (const StreamId stream : {one, other}) {
      const MemberSpec member{stream, {}, {}, {}};
      sent.push_back(work.add_task({{&member, 1}, {}, 20, 10, 1, uses}));
    }
  }
  EXPECT_EQ(work.uses().size(), uses.size());
  const auto replayed = replay(work);
  ASSERT_TRUE(replayed);
  // A pair shares the second resource: each has 2.5 units/s, which take half of it, for 8 s.
  for (std::size_t i = 0; i < sent.size(); ++i) {
    EXPECT_EQ(replayed->tasks[sent[i].index()].end.ps,
              static_cast<std::int64_t>(i / 2 + 1) * 8'000'000'000'000);
  }
}

TEST(Workload, TasksThatDifferInOneThingKeepTheirOwn) {
  Workload work;
  const ResourceId link = work.add_resource(1), slow = work.add_resource(0.5);
  const StreamId stream = work.add_stream();
  const MemberSpec member{stream, {}, {}, {}};
  const Use whole{link, 1}, twice{link, 2}, elsewhere{slow, 1};
  const std::array both{whole, elsewhere};
  const TaskSpec first{{&member, 1}, {}, 2, 1, 1, {&whole, 1}};
  TaskSpec longer = first, slower = first, later = first, heavier = first, other = first,
           more = first, free = first;
  longer.work = 4;
  slower.rate_bound = 0.25;
  later.latency = duration(Seconds(3));
  heavier.uses = {&twice, 1};
  other.uses = {&elsewhere, 1};
  more.uses = both;
  free.uses = {};
  free.rate_bound = 1;
  const std::vector<std::pair<TaskSpec, std::int64_t>> specs{{first, 2}, {longer, 4},  {slower, 8},
                                                             {later, 5}, {heavier, 4}, {other, 4},
                                                             {more, 4},  {free, 2}};
  std::int64_t end_s = 0;
  std::vector<std::int64_t> ends_s;
  // Twice each, so that the second meets the first in the workload's memory.
  for (const auto& [spec, takes_s] : specs) {
    for (int i = 0; i < 2; ++i) {
      work.add_task(spec);
      ends_s.push_back(end_s += takes_s);
    }
  }
  const auto replayed = replay(work);
  ASSERT_TRUE(replayed);
  ASSERT_EQ(replayed->tasks.size(), ends_s.size());
  for (std::size_t i = 0; i < ends_s.size(); ++i) {
    EXPECT_EQ(replayed->tasks[i].end.ps, ends_s[i] * 1'000'000'000'000) << "task " << i;
  }
}

// Two alike but for their share get their parts of a link.
TEST(Workload, AShareIsATasksOwn) {
  Workload work;
  const Use use{work.add_resource(4), 1};
  const MemberSpec one{work.add_stream(), {}, {}, {}}, other{work.add_stream(), {}, {}, {}};
  const TaskId light = work.add_task({{&one, 1}, {}, 4, 4, 1, {&use, 1}});
  const TaskId heavy = work.add_task({{&other, 1}, {}, 12, 4, 3, {&use, 1}});
  const auto replayed = replay(work);
  ASSERT_TRUE(replayed);
  EXPECT_EQ(replayed->tasks[light.index()].end.ps, 4'000'000'000'000);
  EXPECT_EQ(replayed->tasks[heavy.index()].end.ps, 4'000'000'000'000);
}

// A member holds what it says, though others of the same floor hold nothing.
TEST(Workload, FloorsAreSharedAndHoldsAreNot) {
  Workload work;
  const ResourceId gpu = work.add_resource(1);
  const StreamId host = work.add_stream(), quiet = work.add_stream(), busy = work.add_stream(),
                 kernels = work.add_stream();
  const MemberSpec issue{host, {}, {}, {}};
  const TaskId issuer = work.add_task({.members = {&issue, 1}, .latency = {}});
  const Use most{gpu, 0.75};
  const MemberSpec still{quiet, issuer, duration(Seconds(4)), {}};
  const MemberSpec holds{busy, issuer, duration(Seconds(4)), {&most, 1}};
  work.add_task({.members = {&still, 1}, .latency = duration(Seconds(1))});
  work.add_task({.members = {&holds, 1}, .latency = duration(Seconds(1))});
  work.add_task({.members = {&still, 1}, .latency = duration(Seconds(1))});
  const Use all{gpu, 1};
  const MemberSpec kernel{kernels, {}, {}, {}};
  const TaskId last = work.add_task({{&kernel, 1}, {}, 2, 1, 1, {&all, 1}});
  const auto replayed = replay(work);
  ASSERT_TRUE(replayed);
  // A quarter of its rate until the floor of 4 s: one of its two units is left for one second.
  EXPECT_EQ(replayed->tasks[last.index()].end.ps, 5'000'000'000'000);
}

}  // namespace
}  // namespace stepcast::sim
