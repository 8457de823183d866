// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <random>
#include <set>

#include "scene.h"

namespace stepcast::sim {
namespace {

std::string letter(TaskId task, const void*) { return {static_cast<char>('A' + task.value)}; }

std::string message_of(const Workload& workload) {
  const Result<Replay> result = replay(workload, letter);
  if (result.has_value()) return "it ended";
  EXPECT_EQ(result.error().size(), 1U);
  EXPECT_EQ(result.error().front().code, ErrorCode::kIllegal);
  return result.error().front().message;
}

TEST(Cycle, ASoundWorkloadHasNone) {
  Scene scene;
  const StreamId stream = scene.stream();
  const TaskId first = scene.delay(stream, 1);
  const TaskId second = scene.delay(stream, 1);
  scene.workload.depend(first, second);
  EXPECT_TRUE(find_cycle(scene.workload).empty());
}

TEST(Cycle, OfDependenciesIsNamed) {
  Scene scene;
  const TaskId a = scene.delay(scene.stream(), 1);
  const TaskId b = scene.delay(scene.stream(), 1);
  scene.workload.depend(a, b);
  scene.workload.depend(b, a);
  EXPECT_EQ(message_of(scene.workload), "deadlock: A waits for B, which waits for A");
}

TEST(Cycle, OfStreamOrderAgainstADependencyIsNamed) {
  Scene scene;
  const StreamId stream = scene.stream();
  const TaskId a = scene.delay(stream, 1);
  const TaskId b = scene.delay(stream, 1);
  scene.workload.depend(b, a);  // B stands behind A
  EXPECT_EQ(find_cycle(scene.workload), (std::vector<TaskId>{a, b}));
}

TEST(Cycle, OfCollectivesIssuedInDifferentOrdersIsFound) {
  // Rank 0 issues A then B, rank 1 issues B then A: each collective waits behind the other one.
  Scene scene;
  const StreamId rank_0 = scene.stream();
  const StreamId rank_1 = scene.stream();
  const MemberSpec seat = Scene::on(StreamId());
  const Scene::Flow collective{.work = 1, .bound = 1, .uses = {}};
  const TaskId a = scene.flow_on({Scene::on(rank_0), seat}, collective);
  const TaskId b = scene.flow_on({Scene::on(rank_0), seat}, collective);
  scene.workload.place(b, 1, Scene::on(rank_1));
  scene.workload.place(a, 1, Scene::on(rank_1));
  EXPECT_EQ(find_cycle(scene.workload), (std::vector<TaskId>{a, b}));
}

TEST(Cycle, OfATaskWithItselfIsNamed) {
  Scene scene;
  const TaskId a = scene.delay(scene.stream(), 1);
  scene.workload.depend(a, a);
  EXPECT_EQ(message_of(scene.workload), "deadlock: A waits for itself");
}

TEST(Cycle, ThroughAnIssuerIsNamed) {
  // The launch B waits for the end of the kernel that it issues.
  Scene scene;
  const StreamId host = scene.stream();
  const TaskId launch = scene.delay(host, 1);
  const TaskId kernel =
      scene.flow_on({Scene::on(scene.stream(), launch)}, {.work = 1, .bound = 1, .uses = {}});
  scene.workload.depend(kernel, launch);
  EXPECT_EQ(find_cycle(scene.workload).size(), 2U);
  EXPECT_EQ(message_of(scene.workload), "deadlock: A waits for B, which waits for A");
}

TEST(Cycle, WhatMerelyWaitsBehindItIsNotNamed) {
  Scene scene;
  const StreamId stream = scene.stream();
  const TaskId a = scene.delay(scene.stream(), 1);
  const TaskId b = scene.delay(scene.stream(), 1);
  const TaskId victim = scene.delay(stream, 1);
  scene.workload.depend(a, b);
  scene.workload.depend(b, a);
  scene.workload.depend(b, victim);
  const std::vector<TaskId> cycle = find_cycle(scene.workload);
  EXPECT_EQ(std::count(cycle.begin(), cycle.end(), victim), 0);
  EXPECT_EQ(cycle.size(), 2U);
}

TEST(Cycle, OfARandomGraphIsRealAndExistsExactlyWhenTheReplayStops) {
  std::mt19937_64 random(5);
  int cyclic = 0;
  for (int trial = 0; trial < 300; ++trial) {
    Scene scene;
    const std::size_t count = 2 + random() % 12;
    std::vector<TaskId> tasks;
    for (std::size_t t = 0; t < count; ++t) tasks.push_back(scene.delay(scene.stream(), 1));
    std::set<std::pair<TaskId, TaskId>> waits;  // before, after
    for (std::size_t e = 0; e < count; ++e) {
      const TaskId before = tasks[random() % count];
      const TaskId after = tasks[random() % count];
      waits.insert({before, after});
      scene.workload.depend(before, after);
    }
    const std::vector<TaskId> cycle = find_cycle(scene.workload);
    ASSERT_EQ(replay(scene.workload).has_value(), cycle.empty());
    if (cycle.empty()) continue;
    ++cyclic;
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      ASSERT_TRUE(waits.count({cycle[i], cycle[(i + 1) % cycle.size()]}) > 0);
    }
    ASSERT_EQ(std::set<TaskId>(cycle.begin(), cycle.end()).size(), cycle.size());
  }
  EXPECT_GT(cyclic, 50);  // the trial tries something
  EXPECT_LT(cyclic, 290);
}

TEST(Starvation, OfATaskWhoseResourceIsHeldForEverIsAnError) {
  // A is posted at 0 on one stream and holds all of it; its other member waits for B, which needs
  // it.
  Scene scene;
  const ResourceId sms = scene.resource(4);
  const std::vector<Use> held = {{sms, 4}};
  const StreamId other = scene.stream();
  const TaskId a = scene.flow_on({Scene::on(scene.stream(), {}, 0, held), Scene::on(other)},
                                 {.work = 1, .bound = 1, .uses = {}});
  const TaskId b = scene.flow(scene.stream(), {.work = 1, .bound = 1, .uses = {{sms, 1}}});
  scene.workload.depend(b, a, 1);
  EXPECT_TRUE(find_cycle(scene.workload).empty());
  EXPECT_EQ(message_of(scene.workload),
            "deadlock: B needs resource 0, which A holds wholly and cannot give back");
}

TEST(Starvation, OnAResourceWithoutCapacityIsAnError) {
  Scene scene;
  const ResourceId nothing = scene.resource(0);
  scene.flow(scene.stream(), {.work = 1, .bound = 1, .uses = {{nothing, 1}}});
  EXPECT_EQ(message_of(scene.workload), "deadlock: A needs resource 0, which has no capacity");
}

}  // namespace
}  // namespace stepcast::sim
