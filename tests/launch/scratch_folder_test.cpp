// SPDX-License-Identifier: Apache-2.0
#include "launch/scratch_folder.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "launch/default_signals.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

ScratchFolder folder() {
  auto made = ScratchFolder::create(testing::TempDir(), "test");
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

TEST(ScratchFolder, ThatCannotBeMadeIsAnErrorWithAWayOut) {
  const auto made = ScratchFolder::create("/nowhere", "test");
  ASSERT_FALSE(made);
  EXPECT_NE(to_string(made.error()).find("/nowhere"), std::string::npos);
  EXPECT_NE(to_string(made.error()).find("TMPDIR"), std::string::npos);
}

}  // namespace
}  // namespace stepcast
