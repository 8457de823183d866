// SPDX-License-Identifier: Apache-2.0
#include "launch/scratch_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "core/temporary_folder.h"
#include "launch/default_signals.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

ScratchFolder folder() {
  auto made = ScratchFolder::create(::testing::TempDir(), "test");
  EXPECT_TRUE(made);
  return std::move(*made);
}

TEST(ScratchFolder, IsForItsOwnerOnly) {
  const ScratchFolder scratch = folder();
  EXPECT_EQ(fs::status(scratch.path()).permissions(), fs::perms::owner_all);
}

TEST(ScratchFolder, GoesWithAllThatIsInIt) {
  fs::path path;
  {
    const ScratchFolder scratch = folder();
    path = scratch.path();
    fs::create_directory(scratch.file("inner"));
    std::ofstream(scratch.file("inner/job.json")) << "{}";
  }
  EXPECT_FALSE(path.empty());
  EXPECT_FALSE(fs::exists(path));
}

TEST(ScratchFolder, GoesWhenAnExceptionDoes) {
  fs::path path;
  EXPECT_THROW(
      {
        const ScratchFolder scratch = folder();
        path = scratch.path();
        throw std::runtime_error("");
      },
      std::runtime_error);
  EXPECT_FALSE(fs::exists(path));
}

TEST(ScratchFolder, GoesAfterAnInterrupt) {
  const DefaultSignals signals;
  fs::path path;
  {
    const ScratchFolder scratch = folder();
    path = scratch.path();
    EXPECT_EQ(scratch.interrupted(), 0);
    ::raise(SIGINT);  // would end the process
    EXPECT_EQ(scratch.interrupted(), SIGINT);
    EXPECT_TRUE(fs::exists(path));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(ScratchFolder, IsMovedNotCopied) {
  ScratchFolder first = folder();
  const fs::path path = first.path();
  {
    const ScratchFolder second = std::move(first);
    EXPECT_EQ(second.path(), path);
    EXPECT_TRUE(fs::exists(path));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(ScratchFolder, StaysWhenItIsKept) {
  fs::path path;
  {
    ScratchFolder scratch = folder();
    path = scratch.path();
    scratch.keep();
  }
  EXPECT_TRUE(fs::exists(path));
  fs::remove_all(path);
}

// A process that is killed runs no destructor. Its lock goes with it.
TEST(ScratchFolder, OfAKilledOwnerIsRemovedByTheNextAndThoseOfLivingOnesStay) {
  const stepcast::testing::TemporaryFolder parent;
  const auto living = ScratchFolder::create(parent / "", "test");
  ASSERT_TRUE(living);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto mine = ScratchFolder::create(parent / "", "test");
    if (mine) std::ofstream(mine->file("job.json")) << "{}";
    if (::write(ready[1], "", 1) != 1) ::_exit(1);
    while (true) ::pause();
  }
  char word = 0;
  ASSERT_EQ(::read(ready[0], &word, 1), 1);
  EXPECT_EQ(parent.files(), 2u);
  EXPECT_EQ(remove_abandoned_folders(parent / ""), 0);  // both live
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  EXPECT_EQ(parent.files(), 2u);
  const auto next = ScratchFolder::create(parent / "", "test");
  ASSERT_TRUE(next);
  EXPECT_EQ(parent.files(), 2u);  // the living one and the next
  EXPECT_TRUE(fs::exists(living->path()));
}

TEST(ScratchFolder, ThatIsKeptHasNoOwnerAndStays) {
  const stepcast::testing::TemporaryFolder parent;
  {
    auto made = ScratchFolder::create(parent / "", "test");
    ASSERT_TRUE(made);
    std::ofstream(made->file("rank-0.json")) << "{}";
    made->keep();
  }
  EXPECT_EQ(remove_abandoned_folders(parent / ""), 0);
  EXPECT_EQ(parent.files(), 1u);
}

// Killed between the folder and its lock: empty, and removed. What others call by such a name is
// theirs.
TEST(ScratchFolder, WithoutALockIsRemovedOnlyWhenItIsEmptyAndOfOurName) {
  const stepcast::testing::TemporaryFolder parent;
  fs::create_directory(parent / "stepcast-scratch-test-abcdef");
  fs::create_directory(parent / "stepcast-abcdef");
  parent.write("stepcast-scratch-full/file", "text");
  parent.write("stepcast-scratch-file", "text");
  EXPECT_EQ(remove_abandoned_folders(parent / ""), 1);
  EXPECT_EQ(parent.files(), 3u);
}

TEST(ScratchFolder, ThatCannotBeMadeIsAnErrorWithAWayOut) {
  const auto made = ScratchFolder::create("/nowhere", "test");
  ASSERT_FALSE(made);
  EXPECT_NE(to_string(made.error()).find("/nowhere"), std::string::npos);
  EXPECT_NE(to_string(made.error()).find("TMPDIR"), std::string::npos);
}

}  // namespace
}  // namespace stepcast
