// SPDX-License-Identifier: Apache-2.0
#include "core/remembered_files.h"

#include <gtest/gtest.h>

#include <string>

#include "core/temporary_folder.h"

namespace stepcast {
namespace {

using testing::TemporaryFolder;

// A file that nobody writes while the tests run, and one that was written just now.
const std::string kSettled = STEPCAST_SOURCE_DIR "/LICENSE";

TEST(RememberedFiles, AFileThatStaysTheSameIsReadOnce) {
  if (!settled_stamp(kSettled)) GTEST_SKIP() << "the tree was written within the last second";
  RememberedFiles<int> files;
  int reads = 0;
  const auto read = [&]() -> Result<int> { return ++reads; };
  EXPECT_EQ(*files.get({kSettled}, read), 1);
  EXPECT_EQ(*files.get({kSettled}, read), 1);
  EXPECT_EQ(*files.get({kSettled, kSettled}, read), 2);  // another set of files
}

TEST(RememberedFiles, AFileThatWasJustWrittenIsReadEachTime) {
  const TemporaryFolder folder;
  folder.write("a.json", "1");
  EXPECT_FALSE(settled_stamp(folder / "a.json"));
  RememberedFiles<std::string> files;
  const auto read = [&]() -> Result<std::string> { return folder.text("a.json"); };
  EXPECT_EQ(*files.get({folder / "a.json"}, read), "1");
  folder.write("a.json", "2");
  EXPECT_EQ(*files.get({folder / "a.json"}, read), "2");
}

TEST(RememberedFiles, ErrorsAndMissingFilesAreNotRemembered) {
  RememberedFiles<int> files;
  int reads = 0;
  const auto fails = [&]() -> Result<int> {
    ++reads;
    return failure({ErrorCode::kBadValue, "bad", "", "", ""});
  };
  EXPECT_FALSE(files.get({kSettled}, fails));
  EXPECT_FALSE(files.get({kSettled}, fails));
  const auto works = [&]() -> Result<int> { return ++reads; };
  EXPECT_EQ(*files.get({kSettled + ".none"}, works), 3);
  EXPECT_EQ(*files.get({kSettled + ".none"}, works), 4);
}

TEST(RememberedFiles, TwoContentsHaveTwoStamps) {
  const auto one = settled_stamp(kSettled);
  const auto other = settled_stamp(STEPCAST_SOURCE_DIR "/README.md");
  if (!one || !other) GTEST_SKIP() << "the tree was written within the last second";
  EXPECT_NE(*one, *other);
  EXPECT_EQ(*one, *settled_stamp(kSettled));
}

}  // namespace
}  // namespace stepcast
