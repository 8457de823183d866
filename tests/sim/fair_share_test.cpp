// SPDX-License-Identifier: Apache-2.0
// Fluid phases over time: what each task gets, and when it ends, derived in algebra.
#include "scene.h"

namespace stepcast::sim {
namespace {

TEST(FairShare, OneFlowRunsAtItsBoundWhenTheLinkIsWide) {
  Scene scene;
  const ResourceId link = scene.resource(10);
  const TaskId flow = scene.flow(scene.stream(), {.work = 8, .bound = 4, .uses = {{link, 1}}});
  scene.run();
  EXPECT_EQ(scene.end_ps(flow), 2 * kSecond);  // 8 / 4
}

TEST(FairShare, OneFlowIsHeldByANarrowLink) {
  Scene scene;
  const ResourceId link = scene.resource(10);
  const TaskId flow = scene.flow(scene.stream(), {.work = 8, .bound = 100, .uses = {{link, 2}}});
  scene.run();
  EXPECT_EQ(scene.end_ps(flow), 16 * kSecond / 10);  // 2 x rate <= 10: 8 / 5
}

TEST(FairShare, TwoFlowsOnOneLinkEachGetHalf) {
  Scene scene;
  const ResourceId link = scene.resource(10);
  const TaskId a = scene.flow(scene.stream(), {.work = 10, .bound = 10, .uses = {{link, 1}}});
  const TaskId b = scene.flow(scene.stream(), {.work = 20, .bound = 10, .uses = {{link, 1}}});
  scene.run();
  // Both at 5 until a ends at 10/5 = 2 s; b has 10 left and all of the link: 2 + 1 s.
  EXPECT_EQ(scene.end_ps(a), 2 * kSecond);
  EXPECT_EQ(scene.end_ps(b), 3 * kSecond);
}

TEST(FairShare, ALateArrivalSlowsTheRestOfTheFirst) {
  Scene scene;
  const ResourceId link = scene.resource(10);
  const TaskId first = scene.flow(scene.stream(), {.work = 30, .bound = 10, .uses = {{link, 1}}});
  const StreamId other = scene.stream();
  scene.delay(other, 1);
  const TaskId late = scene.flow(other, {.work = 5, .bound = 10, .uses = {{link, 1}}});
  scene.run();
  // [0,1): 10 done. [1,2): 5 each, the late one ends. Then 15 left at 10: ends at 3.5.
  EXPECT_EQ(scene.end_ps(late), 2 * kSecond);
  EXPECT_EQ(scene.end_ps(first), 35 * kSecond / 10);
}

TEST(FairShare, SharesWeighTheRates) {
  Scene scene;
  const ResourceId link = scene.resource(12);
  const TaskId one =
      scene.flow(scene.stream(), {.work = 6, .bound = 100, .uses = {{link, 1}}, .share = 1});
  const TaskId three =
      scene.flow(scene.stream(), {.work = 18, .bound = 100, .uses = {{link, 1}}, .share = 3});
  scene.run();
  EXPECT_EQ(scene.end_ps(one), 2 * kSecond);  // 3 and 9
  EXPECT_EQ(scene.end_ps(three), 2 * kSecond);
}

TEST(FairShare, LatencyLoadsNothing) {
  Scene scene;
  const ResourceId link = scene.resource(10);
  const TaskId prompt = scene.flow(scene.stream(), {.work = 20, .bound = 10, .uses = {{link, 1}}});
  const TaskId slow = scene.flow(
      scene.stream(), {.work = 10, .bound = 10, .uses = {{link, 1}}, .share = 1, .latency_s = 2});
  scene.run();
  EXPECT_EQ(scene.end_ps(prompt), 2 * kSecond);
  EXPECT_EQ(scene.end_ps(slow), 3 * kSecond);
  EXPECT_DOUBLE_EQ(scene.start(slow), 0);
}

TEST(FairShare, ChangesReachTasksThroughAChainOfTightLinks) {
  Scene scene;
  const ResourceId a = scene.resource(10);
  const ResourceId b = scene.resource(10);
  const StreamId first = scene.stream();
  const TaskId x = scene.flow(first, {.work = 10, .bound = 100, .uses = {{a, 1}}});
  const TaskId y = scene.flow(scene.stream(), {.work = 20, .bound = 100, .uses = {{a, 1}, {b, 1}}});
  const TaskId z = scene.flow(scene.stream(), {.work = 20, .bound = 100, .uses = {{b, 2}}});
  scene.run();
  // b: y + 2 z = 10, y = z = 10/3; a: x = 10 - 10/3 = 20/3. x ends at 1.5 s. Then y is still held
  // by b: y and z run on at 10/3 and end together at 6 s.
  EXPECT_EQ(scene.end_ps(x), 15 * kSecond / 10);
  EXPECT_EQ(scene.end_ps(y), 6 * kSecond);
  EXPECT_EQ(scene.end_ps(z), 6 * kSecond);
}

TEST(FairShare, ArrivalsOfOneInstantAreSolvedOnce) {
  Scene scene;
  const ResourceId link = scene.resource(9);
  for (int i = 0; i < 3; ++i) {
    scene.flow(scene.stream(), {.work = 3, .bound = 100, .uses = {{link, 1}}});
  }
  scene.run();
  // One rate each for the three arrivals, and one end each.
  ASSERT_EQ(scene.rates.size(), 6U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(scene.rates[i].rate, 3);
  EXPECT_EQ(scene.replayed.end.ps, kSecond);
}

TEST(FairShare, AFlowOnASlackLinkKeepsItsRateWhenOthersCome) {
  Scene scene;
  const ResourceId link = scene.resource(10);
  const TaskId early = scene.flow(scene.stream(), {.work = 9, .bound = 3, .uses = {{link, 1}}});
  const StreamId other = scene.stream();
  scene.delay(other, 1);
  scene.flow(other, {.work = 7, .bound = 7, .uses = {{link, 1}}});  // 3 + 7 just fits
  scene.run();
  EXPECT_EQ(scene.end_ps(early), 3 * kSecond);
  EXPECT_EQ(scene.replayed.end.ps, 3 * kSecond);
  EXPECT_EQ(scene.rates.size(), 4U);  // a rate and an end for each
}

TEST(FairShare, WorkThatRoundsToNoTimeStillEnds) {
  Scene scene;
  const ResourceId link = scene.resource(1);
  const StreamId stream = scene.stream();
  const TaskId dust = scene.flow(stream, {.work = 1e-14, .bound = 1, .uses = {{link, 1}}});
  const TaskId next = scene.flow(stream, {.work = 1, .bound = 1, .uses = {{link, 1}}});
  scene.run();
  EXPECT_EQ(scene.end_ps(dust), 0);
  EXPECT_EQ(scene.end_ps(next), kSecond);
}

// Holds: SMs that a communication kernel takes from the kernels beside it.

TEST(Holds, TakeCapacityFromTheFirstPostingToTheEnd) {
  Scene scene;
  const ResourceId sms = scene.resource(8);
  const StreamId compute = scene.stream();
  const StreamId mine = scene.stream();
  const StreamId theirs = scene.stream();
  const TaskId kernel = scene.flow(compute, {.work = 5, .bound = 1, .uses = {{sms, 8}}});
  const TaskId late = scene.delay(theirs, 2);
  const std::vector<Use> held = {{sms, 2}};
  const TaskId collective = scene.flow_on({Scene::on(mine, {}, 0, held), Scene::on(theirs)},
                                          {.work = 1, .bound = 1, .uses = {}});
  scene.run();
  // Posted on `mine` at 0, started by the late rank at 2, ends at 3: for 3 s the kernel has 6 of 8
  // units and does 2.25; the last 2.75 take 2.75 s.
  EXPECT_EQ(scene.end_ps(late), 2 * kSecond);
  EXPECT_DOUBLE_EQ(scene.start(collective), 2);
  EXPECT_EQ(scene.end_ps(collective), 3 * kSecond);
  EXPECT_EQ(scene.end_ps(kernel), 575 * kSecond / 100);
}

// Holds may spare what waits for the late rank: it takes nothing, and the kernel has 6 of 8 units
// for the second from 2 to 3 alone.
TEST(Holds, MayBeginWithTheTask) {
  Scene scene;
  const ResourceId sms = scene.resource(8);
  const StreamId compute = scene.stream(), mine = scene.stream(), theirs = scene.stream();
  const TaskId kernel = scene.flow(compute, {.work = 5, .bound = 1, .uses = {{sms, 8}}});
  scene.delay(theirs, 2);
  const std::vector<Use> held = {{sms, 2}};
  MemberSpec waiting = Scene::on(mine, {}, 0, held);
  waiting.holds_from_start = true;
  const TaskId transfer =
      scene.flow_on({waiting, Scene::on(theirs)}, {.work = 1, .bound = 1, .uses = {}});
  scene.run();
  EXPECT_EQ(scene.end_ps(transfer), 3 * kSecond);
  EXPECT_EQ(scene.end_ps(kernel), 525 * kSecond / 100);
}

TEST(Holds, LeaveNothingBelowZero) {
  Scene scene;
  const ResourceId sms = scene.resource(4);
  const std::vector<Use> held = {{sms, 3}};
  const Scene::Flow transfer{.work = 2, .bound = 1, .uses = {}};
  scene.flow_on({Scene::on(scene.stream(), {}, 0, held)}, transfer);
  scene.flow_on({Scene::on(scene.stream(), {}, 0, held)}, transfer);
  const TaskId kernel = scene.flow(scene.stream(), {.work = 1, .bound = 1, .uses = {{sms, 4}}});
  scene.run();
  EXPECT_EQ(scene.end_ps(kernel), 3 * kSecond);  // stands still for 2 s, then runs for 1 s
}

TEST(Holds, AreNotTakenBeforeTheIssuerHasStarted) {
  Scene scene;
  const ResourceId sms = scene.resource(2);
  const StreamId host = scene.stream();
  scene.delay(host, 1);
  const TaskId launch = scene.delay(host, 1);
  const std::vector<Use> held = {{sms, 1}};
  scene.flow_on({Scene::on(scene.stream(), launch, 0, held)}, {.work = 1, .bound = 1, .uses = {}});
  const TaskId kernel = scene.flow(scene.stream(), {.work = 2, .bound = 1, .uses = {{sms, 2}}});
  scene.run();
  // Full speed until 1 s, half speed until 2 s, then 0.5 left: 2.5 s.
  EXPECT_EQ(scene.end_ps(kernel), 25 * kSecond / 10);
}

}  // namespace
}  // namespace stepcast::sim
