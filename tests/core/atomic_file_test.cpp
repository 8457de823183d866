// SPDX-License-Identifier: Apache-2.0
#include "core/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "core/failed_write.h"
#include "core/file_size_limit.h"
#include "core/temporary_folder.h"

namespace stepcast {
namespace {

using testing::FileSizeLimit;
using testing::TemporaryFolder;
namespace fs = std::filesystem;

mode_t mode_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_mode & 07777;
}

TEST(AtomicFile, ReplacesTheTextAndLeavesNothingElse) {
  const TemporaryFolder folder;
  folder.write("a.txt", "old");
  ASSERT_TRUE(write_file_atomically(folder / "a.txt", "new\n"));
  EXPECT_EQ(folder.text("a.txt"), "new\n");
  EXPECT_EQ(folder.files(), 1u);
}

TEST(AtomicFile, AFailedWriteLeavesTheOldFileAndNoTemporary) {
  const TemporaryFolder folder;
  folder.write("a.txt", "old");
  {
    const FileSizeLimit full(1000);
    const auto written = write_file_atomically(folder / "a.txt", std::string(5000, 'x'));
    ASSERT_FALSE(written);
    EXPECT_NE(to_string(written.error()).find(folder / "a.txt" + ": cannot be written: File too"),
              std::string::npos)
        << to_string(written.error());
  }
  EXPECT_EQ(folder.text("a.txt"), "old");
  EXPECT_EQ(folder.files(), 1u);
}

TEST(AtomicFile, AFailedRenameLeavesNoTemporary) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "taken");
  AtomicFile file(folder / "taken/a");
  ASSERT_TRUE(file.write("text"));
  fs::create_directory(folder / "taken/a");
  EXPECT_FALSE(file.publish());
  EXPECT_TRUE(fs::is_directory(folder / "taken/a"));
  { const AtomicFile last(std::move(file)); }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "taken"), {}), 1);
}

TEST(AtomicFile, AMissingFolderIsAnError) {
  const TemporaryFolder folder;
  const auto written = write_file_atomically(folder / "none/a.txt", "text");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().front().code, ErrorCode::kIo);
  EXPECT_EQ(written.error().front().message, "cannot be written: No such file or directory");
}

TEST(AtomicFile, WhatIsNotPublishedIsGone) {
  const TemporaryFolder folder;
  {
    AtomicFile file(folder / "a.txt");
    ASSERT_TRUE(file.write("text"));
    EXPECT_EQ(folder.files(), 1u);
  }
  EXPECT_EQ(folder.files(), 0u);
}

TEST(AtomicFile, ALinkStaysAndItsTargetChanges) {
  const TemporaryFolder folder;
  folder.write("real.txt", "old");
  fs::create_symlink(folder / "real.txt", folder / "link.txt");
  ASSERT_TRUE(write_file_atomically(folder / "link.txt", "new"));
  EXPECT_TRUE(fs::is_symlink(folder / "link.txt"));
  EXPECT_EQ(folder.text("real.txt"), "new");
}

TEST(AtomicFile, ALinkToWhatIsNotThereStays) {
  const TemporaryFolder folder;
  fs::create_symlink("real.txt", folder / "link.txt");
  ASSERT_TRUE(write_file_atomically(folder / "link.txt", "new"));
  EXPECT_TRUE(fs::is_symlink(folder / "link.txt"));
  EXPECT_EQ(folder.text("real.txt"), "new");
}

// Two flags that name one file are told apart from two files by this.
TEST(AtomicFile, AFileThatIsNotThereYetHasOneName) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "deep");
  fs::create_directory_symlink(folder / "deep", folder / "alias");
  const std::string name = file_behind_links(folder / "deep/a.txt");
  for (const char* other : {"deep/./a.txt", "deep/../deep/a.txt", "alias/a.txt"}) {
    EXPECT_EQ(file_behind_links(folder / other), name) << other;
  }
  EXPECT_NE(file_behind_links(folder / "a.txt"), name);
  EXPECT_EQ(file_behind_links("./a.txt"), file_behind_links("a.txt"));
}

TEST(AtomicFile, KeepsTheModeOfTheOldFileAndObeysTheUmaskForANewOne) {
  const TemporaryFolder folder;
  folder.write("old.txt", "old");
  fs::permissions(folder / "old.txt", static_cast<fs::perms>(0640));
  const mode_t mask = ::umask(027);
  ASSERT_TRUE(write_file_atomically(folder / "old.txt", "new"));
  ASSERT_TRUE(write_file_atomically(folder / "new.txt", "new"));
  ::umask(mask);
  EXPECT_EQ(mode_of(folder / "old.txt"), 0640u);
  EXPECT_EQ(mode_of(folder / "new.txt"), 0640u);  // 0666 without 027
}

TEST(AtomicFile, ADeviceIsWrittenInPlace) {
  EXPECT_TRUE(is_special_file("/dev/null"));
  EXPECT_TRUE(write_file_atomically("/dev/null", "text"));
  const auto full = write_file_atomically("/dev/full", "text");
  ASSERT_FALSE(full);
  EXPECT_EQ(to_string(full.error().front()),
            "/dev/full: cannot be written: No space left on device");
}

TEST(FailedWrite, AFullDiskAsksForRoomAndNotForRights) {
  const std::string rights = "name a file that you may write to";
  for (const int reason : {ENOSPC, EDQUOT}) {
    EXPECT_EQ(hint_of_failed_write(reason, rights),
              "free some room there, or name a place on another disk");
  }
  for (const int reason : {EACCES, EROFS, ENOENT}) {
    EXPECT_EQ(hint_of_failed_write(reason, rights), rights);
  }
}

}  // namespace
}  // namespace stepcast
