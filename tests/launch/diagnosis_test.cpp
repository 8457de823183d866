// SPDX-License-Identifier: Apache-2.0
#include "launch/diagnosis.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "launch/rank_output.h"

namespace stepcast {
namespace {

const RankWatch::Time kBegin{std::chrono::hours(1)};

// Three ranks that have started.
struct Scene {
  RankWatch watch{3, {}, kBegin, {}};
  LaunchEvidence evidence;

  Scene() {
    for (int rank = 0; rank < 3; ++rank) says(rank, R"("event":"started")");
  }
  Scene& says(int rank, const std::string& keys) {
    watch.hear(rank, fmt::format(R"(@stepcast {{"rank":{},{}}})", rank, keys), kBegin);
    return *this;
  }
  Scene& fails(int rank, const std::string& kind) {
    return says(rank, fmt::format(R"("event":"failed","kind":"{}","message":"it is so")", kind));
  }
  Scene& mpirun_blames(int rank, int signal) {
    watch.hear(RankOutput::kLauncher,
               fmt::format("mpirun noticed that process rank {} with PID 0 on node n exited on "
                           "signal {} (x).",
                           rank, signal),
               kBegin);
    evidence.mpirun = {false, 128 + signal};
    return *this;
  }
  LaunchOutcome outcome() const { return diagnose(watch, evidence); }
};

TEST(Diagnosis, IsWellOnlyWhenEveryRankHasFinished) {
  Scene scene;
  scene.says(0, R"("event":"finished")").says(1, R"("event":"finished")");
  EXPECT_EQ(scene.outcome().end, LaunchEnd::kDied);
  EXPECT_EQ(scene.outcome().rank, 2);
  scene.says(2, R"("event":"finished")");
  EXPECT_TRUE(scene.outcome().ok());
  scene.evidence.mpirun = {false, 1};
  EXPECT_FALSE(scene.outcome().ok());
}

TEST(Diagnosis, OfSigkillIsOutOfMemoryOnlyWhenTheKernelKilledForMemory) {
  Scene scene;
  scene.mpirun_blames(1, SIGKILL);
  EXPECT_EQ(scene.outcome().end, LaunchEnd::kDied);
  scene.evidence.memory_kill = true;
  EXPECT_EQ(scene.outcome().end, LaunchEnd::kOutOfMemory);
  EXPECT_EQ(scene.outcome().rank, 1);
  EXPECT_NE(scene.outcome().message.find("kernel ran out of memory"), std::string::npos);
}

TEST(Diagnosis, OfAnotherSignalIsNotOutOfMemory) {
  Scene scene;
  scene.mpirun_blames(1, SIGSEGV);
  scene.evidence.memory_kill = true;
  EXPECT_EQ(scene.outcome().end, LaunchEnd::kDied);
  EXPECT_EQ(scene.outcome().message, "rank 1 was ended by SIGSEGV");
}

TEST(Diagnosis, NamesASignalThatMpirunPassesOnWithoutARank) {
  Scene scene;
  scene.evidence.mpirun = {false, 128 + SIGABRT};
  const LaunchOutcome outcome = scene.outcome();
  EXPECT_EQ(outcome.end, LaunchEnd::kDied);
  EXPECT_EQ(outcome.signal, SIGABRT);
  EXPECT_EQ(outcome.message.rfind("a rank was ended by SIGABRT; mpirun did not say which", 0), 0u)
      << outcome.message;
}

TEST(Diagnosis, PrefersCausesToConsequences) {
  // Rank 0 lost rank 2 because it ran out of memory.
  const LaunchOutcome memory =
      Scene().fails(0, "communication").fails(2, "out_of_memory").outcome();
  EXPECT_EQ(memory.end, LaunchEnd::kOutOfMemory);
  EXPECT_EQ(memory.rank, 2);
  // Rank 0 lost rank 2 because it died without a word.
  const LaunchOutcome death = Scene().fails(0, "communication").mpirun_blames(2, SIGSEGV).outcome();
  EXPECT_EQ(death.end, LaunchEnd::kDied);
  EXPECT_EQ(death.rank, 2);
  // Rank 0 said that its numbers are wrong, then it was aborted.
  const LaunchOutcome numerics = Scene().fails(0, "numerics").mpirun_blames(0, SIGABRT).outcome();
  EXPECT_EQ(numerics.end, LaunchEnd::kNumerics);
  // When ranks lose each other, the first to say so is named; it is no news that one of them then
  // ended.
  Scene lost;
  lost.fails(2, "communication").fails(1, "communication").mpirun_blames(1, SIGABRT);
  EXPECT_EQ(lost.outcome().end, LaunchEnd::kCommunication);
  EXPECT_EQ(lost.outcome().rank, 2);
  EXPECT_EQ(lost.outcome().message, "rank 2 lost the connection to other ranks: it is so");
}

TEST(Diagnosis, OfAnInterruptIsNothingElse) {
  Scene scene;
  scene.fails(0, "numerics").mpirun_blames(1, SIGTERM);
  scene.evidence.interrupt = SIGINT;
  EXPECT_EQ(scene.outcome().end, LaunchEnd::kInterrupted);
  EXPECT_EQ(scene.outcome().signal, SIGINT);
  EXPECT_EQ(scene.outcome().message, "interrupted by SIGINT");
}

TEST(Diagnosis, OfAHangNamesPhasesNotTheSignalsThatEndedIt) {
  Scene scene;
  scene.says(1, R"("event":"finished")").says(2, R"("event":"progress","phase":"warm-up")");
  scene.mpirun_blames(0, SIGTERM);
  scene.evidence.stopped = StopReason::kSilence;
  const LaunchOutcome outcome = scene.outcome();
  EXPECT_EQ(outcome.end, LaunchEnd::kHung);
  EXPECT_EQ(outcome.rank, -1);
  EXPECT_EQ(outcome.message,
            "no rank has reported anything for 60 s; not finished: rank 0, rank 2 in 'warm-up'");
}

TEST(Diagnosis, OfAStopKnowsADeathThatCameBefore) {
  // mpirun was slow to end the others after rank 2 had died.
  Scene scene;
  scene.fails(0, "communication").mpirun_blames(2, SIGSEGV);
  scene.evidence.stopped = StopReason::kFailure;
  EXPECT_EQ(scene.outcome().end, LaunchEnd::kDied);
  EXPECT_EQ(scene.outcome().rank, 2);
}

TEST(Diagnosis, OfAHangInFinalizeSaysSo) {
  Scene scene;
  for (int rank = 0; rank < 3; ++rank) scene.says(rank, R"("event":"finished")");
  scene.evidence.stopped = StopReason::kSilence;
  EXPECT_EQ(scene.outcome().end, LaunchEnd::kHung);
  EXPECT_NE(scene.outcome().message.find("all have finished"), std::string::npos);
}

TEST(Diagnosis, ShowsTheLinesOfTheRankToBlame) {
  Scene scene;
  scene.watch.hear(0, "innocent", kBegin);
  scene.watch.hear(1, "assertion failed", kBegin);
  scene.mpirun_blames(1, SIGABRT);
  EXPECT_EQ(scene.outcome().last_lines, std::vector<std::string>{"assertion failed"});
}

TEST(Diagnosis, SurvivesABlamedRankThatDoesNotExist) {
  const LaunchOutcome outcome =
      Scene().fails(0, "communication").mpirun_blames(9, SIGSEGV).outcome();
  EXPECT_EQ(outcome.end, LaunchEnd::kDied);
  EXPECT_EQ(outcome.rank, 9);
}

}  // namespace
}  // namespace stepcast
