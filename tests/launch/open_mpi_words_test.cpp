// SPDX-License-Identifier: Apache-2.0
// Texts as mpirun 4.1.4 wrote them.
#include "launch/open_mpi_words.h"

#include <gtest/gtest.h>

#include <string>

namespace stepcast {
namespace {

const std::string kAborted =
    "-----------------------------------\n"
    "Primary job  terminated normally, but 1 process returned\n"
    "a non-zero exit code. Per user-direction, the job has been aborted.\n"
    "-----------------------------------\n";

TEST(OpenMpiWords, NameTheSignal) {
  const auto death = death_in(kAborted +
                              "mpirun noticed that process rank 11 with PID 0 on node vm exited on "
                              "signal 9 (Killed).\n");
  ASSERT_TRUE(death);
  EXPECT_EQ(death->rank, 11);
  EXPECT_EQ(death->signal, 9);
  EXPECT_EQ(death->exit_code, -1);
}

TEST(OpenMpiWords, NameTheExitCode) {
  const auto death = death_in(
      kAborted +
      "mpirun detected that one or more processes exited with non-zero status, thus causing\n"
      "the job to be terminated. The first process to do so was:\n\n"
      "  Process name: [[23128,1],12]\n  Exit code:    3\n");
  ASSERT_TRUE(death);
  EXPECT_EQ(death->rank, 12);
  EXPECT_EQ(death->signal, 0);
  EXPECT_EQ(death->exit_code, 3);
}

TEST(OpenMpiWords, NameTheCallerOfAbort) {
  const auto death = death_in(
      "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\nwith errorcode 7.\n");
  ASSERT_TRUE(death);
  EXPECT_TRUE(death->aborted);
  EXPECT_EQ(death->rank, 1);
  EXPECT_EQ(death->exit_code, 7);
}

TEST(OpenMpiWords, NameTheRankThatLeftEarly) {
  const auto death = death_in(
      "mpirun has exited due to process rank 1 with PID 0 on\n"
      "node vm exiting improperly. There are three reasons this could occur:\n");
  ASSERT_TRUE(death);
  EXPECT_TRUE(death->unfinalized);
  EXPECT_EQ(death->rank, 1);
}

TEST(OpenMpiWords, OfAnythingElseNameNobody) {
  EXPECT_FALSE(death_in(""));
  EXPECT_FALSE(death_in(kAborted));
  EXPECT_FALSE(death_in("There are not enough slots available in the system"));
  EXPECT_FALSE(death_in("noticed that process rank nobody exited on signal"));
}

}  // namespace
}  // namespace stepcast
