// SPDX-License-Identifier: Apache-2.0
// One rank that is started without mpirun: a shell that ends as it is told.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "launch/mpi_launch.h"

namespace stepcast {
namespace {

constexpr const char* kStarted = R"(echo '@stepcast {"rank":0,"event":"started"}' >&2; )";
constexpr const char* kFinished = R"(echo '@stepcast {"rank":0,"event":"finished"}' >&2; )";

LaunchOutcome outcome_of(const std::string& script) {
  RankLaunch launch;
  launch.program.program = "/bin/sh";
  launch.program.arguments = {"-c", script};
  launch.program.alone = true;
  launch.program.inherited = {"PATH=/usr/bin:/bin"};
  const auto outcome = launch_ranks(launch);
  EXPECT_TRUE(outcome) << to_string(outcome ? Errors{} : outcome.error());
  return outcome ? *outcome : LaunchOutcome{};
}

TEST(AloneLaunch, FinishesWhenTheRankDoes) {
  EXPECT_EQ(outcome_of(std::string(kStarted) + kFinished).end, LaunchEnd::kFinished);
}

TEST(AloneLaunch, ARankThatEndsEarlyHasNotFinished) {
  const LaunchOutcome outcome = outcome_of(kStarted);
  EXPECT_EQ(outcome.end, LaunchEnd::kDied);
  EXPECT_EQ(outcome.rank, 0);
}

TEST(AloneLaunch, TellsTheExitCodeAndTheLastLine) {
  const LaunchOutcome outcome = outcome_of(std::string(kStarted) + "echo no driver >&2; exit 3");
  EXPECT_EQ(outcome.message, "rank 0 ended with exit code 3");
  ASSERT_EQ(outcome.last_lines.size(), 1u);
  EXPECT_EQ(outcome.last_lines.front(), "no driver");
}

TEST(AloneLaunch, TellsTheSignal) {
  const LaunchOutcome outcome = outcome_of(std::string(kStarted) + "kill -SEGV $$");
  EXPECT_EQ(outcome.signal, SIGSEGV);
  EXPECT_EQ(outcome.message, "rank 0 was ended by SIGSEGV");
}

TEST(AloneLaunch, WhatTheRankSaysOfItsFailureIsTheReason) {
  const LaunchOutcome outcome = outcome_of(
      std::string(kStarted) +
      R"(echo '@stepcast {"rank":0,"event":"failed","kind":"input","message":"no GPU"}' >&2)" +
      "; exit 1");
  EXPECT_EQ(outcome.end, LaunchEnd::kInput);
  EXPECT_EQ(outcome.message, "no GPU");
}

}  // namespace
}  // namespace stepcast
