// SPDX-License-Identifier: Apache-2.0
#include "core/remembered_files.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "core/temporary_folder.h"
#include "places.h"

namespace stepcast {
namespace {

using testing::TemporaryFolder;

// A file that nobody writes while the tests run.
const std::string kSettled = source_folder() + "/LICENSE";

// A tree that was written within the last second settles in the next.
void wait_until_settled(const std::string& file) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!settled_stamp(file)) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << file;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

TEST(RememberedFiles, AFileThatStaysTheSameIsReadOnce) {
  wait_until_settled(kSettled);
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
  const std::string page = source_folder() + "/README.md";
  wait_until_settled(kSettled);
  wait_until_settled(page);
  const auto one = settled_stamp(kSettled), other = settled_stamp(page);
  ASSERT_TRUE(one && other);
  EXPECT_NE(*one, *other);
  EXPECT_EQ(*one, *settled_stamp(kSettled));
}

}  // namespace
}  // namespace stepcast
