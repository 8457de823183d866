// SPDX-License-Identifier: Apache-2.0
#include "sim/engine.h"

#include "scene.h"

namespace stepcast::sim {
namespace {

TEST(Replay, OfNothingEndsAtOnce) {
  const Result<Replay> result = replay(Workload());
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->end.ps, 0);
  EXPECT_EQ(result->events, 0U);
}

TEST(Replay, AStreamRunsItsTasksInOrder) {
  Scene scene;
  const StreamId stream = scene.stream();
  const TaskId first = scene.delay(stream, 2);
  const TaskId second = scene.delay(stream, 3);
  scene.run();
  EXPECT_EQ(scene.end(first), 2);
  EXPECT_EQ(scene.start(second), 2);
  EXPECT_EQ(scene.end(second), 5);
  EXPECT_EQ(scene.replayed.events, 4U);
}

TEST(Replay, ATaskWaitsForItsDependenciesOnOtherStreams) {
  Scene scene;
  const StreamId a = scene.stream();
  const StreamId b = scene.stream();
  const TaskId slow = scene.delay(a, 4);
  scene.delay(b, 1);
  const TaskId waiting = scene.delay(b, 1);
  scene.workload.depend(slow, waiting);
  scene.run();
  EXPECT_EQ(scene.start(waiting), 4);
  EXPECT_EQ(scene.end(waiting), 5);
}

TEST(Replay, AJointTaskStartsWithItsLastMemberAndEndsOnAllStreams) {
  Scene scene;
  const StreamId a = scene.stream();
  const StreamId b = scene.stream();
  scene.delay(a, 1);
  scene.delay(b, 3);
  const TaskId joint =
      scene.flow_on({Scene::on(a), Scene::on(b)}, {.work = 4, .bound = 2, .uses = {}});
  const TaskId after_a = scene.delay(a, 1);
  const TaskId after_b = scene.delay(b, 2);
  scene.run();
  EXPECT_EQ(scene.start(joint), 3);
  EXPECT_EQ(scene.end(joint), 5);
  EXPECT_EQ(scene.end(after_a), 6);
  EXPECT_EQ(scene.end(after_b), 7);
}

TEST(Replay, ADependencyOfOneMemberDelaysTheWholeTask) {
  Scene scene;
  const StreamId a = scene.stream();
  const StreamId b = scene.stream();
  const TaskId slow = scene.delay(scene.stream(), 5);
  const TaskId joint =
      scene.flow_on({Scene::on(a), Scene::on(b)}, {.work = 1, .bound = 1, .uses = {}});
  scene.workload.depend(slow, joint, 1);
  scene.run();
  EXPECT_EQ(scene.start(joint), 5);
}

TEST(Replay, LatencyComesBeforeTheWork) {
  Scene scene;
  const TaskId task =
      scene.flow(scene.stream(), {.work = 6, .bound = 2, .uses = {}, .share = 1, .latency_s = 0.5});
  scene.run();
  EXPECT_EQ(scene.end(task), 3.5);
}

TEST(Replay, ChainsOfTasksWithoutLengthEndAtOneInstant) {
  Scene scene;
  const StreamId a = scene.stream();
  const StreamId b = scene.stream();
  scene.delay(a, 1);
  TaskId last = scene.delay(a, 0);
  for (int i = 0; i < 5; ++i) {
    const TaskId next = scene.delay(i % 2 == 0 ? b : a, 0);
    scene.workload.depend(last, next);
    last = next;
  }
  scene.run();
  EXPECT_EQ(scene.end_ps(last), kSecond);
}

TEST(Replay, ATaskIsPostedNoEarlierThanItsIssuerStarts) {
  Scene scene;
  const StreamId host = scene.stream();
  const StreamId device = scene.stream();
  scene.delay(host, 2);
  const TaskId launch = scene.delay(host, 1);
  const TaskId kernel =
      scene.flow_on({Scene::on(device, launch)}, {.work = 5, .bound = 1, .uses = {}});
  scene.run();
  EXPECT_EQ(scene.start(kernel), 2);  // with the launch, not after it
  EXPECT_EQ(scene.end(kernel), 7);
}

TEST(Replay, ATaskEndsNoEarlierThanItsIssuersStartPlusTheFloor) {
  Scene scene;
  const StreamId host = scene.stream();
  const StreamId device = scene.stream();
  scene.delay(host, 2);
  const TaskId launch = scene.delay(host, 1);
  const TaskId brief =
      scene.flow_on({Scene::on(device, launch, 4)}, {.work = 1, .bound = 1, .uses = {}});
  const TaskId longer =
      scene.flow_on({Scene::on(device, launch, 4)}, {.work = 9, .bound = 1, .uses = {}});
  scene.run();
  EXPECT_EQ(scene.end(brief), 6);    // max(2 + 1, 2 + 4)
  EXPECT_EQ(scene.end(longer), 15);  // max(6 + 9, 2 + 4)
}

TEST(Replay, TheFloorOfAFlowDoesNotKeepTheLink) {
  Scene scene;
  const ResourceId link = scene.resource(1);
  const StreamId host = scene.stream();
  const TaskId launch = scene.delay(host, 1);
  const TaskId floored = scene.flow_on({Scene::on(scene.stream(), launch, 10)},
                                       {.work = 1, .bound = 1, .uses = {{link, 1}}});
  const TaskId other = scene.flow(scene.stream(), {.work = 2, .bound = 1, .uses = {{link, 1}}});
  scene.run();
  // Half each until 2 s, then the other one alone for 1 s more.
  EXPECT_EQ(scene.end(other), 3);
  EXPECT_EQ(scene.end(floored), 10);
}

TEST(Replay, TheLatestFloorOfAllMembersCounts) {
  Scene scene;
  const StreamId early_host = scene.stream();
  const StreamId late_host = scene.stream();
  const TaskId early = scene.delay(early_host, 1);
  scene.delay(late_host, 3);
  const TaskId late = scene.delay(late_host, 1);
  const TaskId joint =
      scene.flow_on({Scene::on(scene.stream(), early, 5), Scene::on(scene.stream(), late, 4)},
                    {.work = 1, .bound = 1, .uses = {}});
  scene.run();
  EXPECT_EQ(scene.end(joint), 7);  // max(0 + 5, 3 + 4, 3 + 1)
}

TEST(Replay, CompletionsAreRoundedToTheNearestPicosecond) {
  Scene scene;
  const TaskId third = scene.flow(scene.stream(), {.work = 1, .bound = 3, .uses = {}});
  const TaskId two_thirds = scene.flow(scene.stream(), {.work = 2, .bound = 3, .uses = {}});
  scene.run();
  EXPECT_EQ(scene.end_ps(third), 333'333'333'333);
  EXPECT_EQ(scene.end_ps(two_thirds), 666'666'666'667);
}

TEST(Replay, IsTheSameForASealedWorkload) {
  Scene scene;
  const StreamId stream = scene.stream();
  const TaskId task = scene.delay(stream, 1);
  scene.workload.seal();
  scene.run();
  EXPECT_EQ(scene.end(task), 1);
  const TaskId added = scene.delay(stream, 1);  // undoes the sealing
  scene.run();
  EXPECT_EQ(scene.end(added), 2);
}

std::string clock_error_of(const Scene& scene) {
  const Result<Replay> result = replay(scene.workload);
  return result ? "" : result.error().front().message;
}

TEST(Replay, ThatOutlastsTheClockNamesTheTaskThatDoes) {
  const std::string too_long = "the step takes longer than a forecast can count: ";
  Scene flow;
  flow.delay(flow.stream(), 1);
  flow.flow(flow.stream(), {.work = 1e9, .bound = 1, .uses = {}});  // 31 years
  EXPECT_EQ(clock_error_of(flow), too_long + "task 1 alone takes more than 11 days");
  Scene wait;
  wait.delay(wait.stream(), 1e300);
  EXPECT_EQ(clock_error_of(wait), too_long + "task 0 alone takes more than 11 days");
  Scene floor;
  const StreamId stream = floor.stream();
  const TaskId issuer = floor.delay(stream, 1);
  floor.flow_on({Scene::on(floor.stream(), issuer, 1e7)}, {.work = 0, .bound = 1, .uses = {}});
  EXPECT_EQ(clock_error_of(floor), too_long + "task 1 alone takes more than 11 days");
}

// Nine tasks of 900,000 s are 94 days, and eight are 83.
TEST(Replay, ManyTasksMayOutlastTheClockTogether) {
  Scene scene;
  const StreamId stream = scene.stream();
  for (int i = 0; i < 8; ++i) scene.delay(stream, 9e5);
  EXPECT_EQ(clock_error_of(scene), "");
  scene.delay(stream, 9e5);
  EXPECT_EQ(clock_error_of(scene),
            "the step takes longer than a forecast can count: a few steps take more than 92 days");
}

}  // namespace
}  // namespace stepcast::sim
