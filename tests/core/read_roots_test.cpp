// SPDX-License-Identifier: Apache-2.0
#include "core/read_roots.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/text_file.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

class ReadRoots : public ::testing::Test {
 protected:
  ReadRoots() {
    std::string name = (fs::temp_directory_path() / "stepcast-roots-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    fs::create_directories(folder_ / "open" / "deep");
    fs::create_directories(folder_ / "openly");
    for (const char* file : {"open/a", "open/deep/b", "openly/c", "d"}) {
      std::ofstream(folder_ / file) << "text";
    }
    fs::create_symlink(folder_ / "d", folder_ / "open" / "link");
    fs::create_symlink(folder_ / "open" / "a", folder_ / "inward");
  }
  ~ReadRoots() override { fs::remove_all(folder_); }

  // A process is bound for good, so a child is.
  template <class Body>
  static bool holds_in_child(const Body& body) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body() ? 0 : 1);
    int status = 1;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }

  fs::path folder_;
};

TEST_F(ReadRoots, AProcessReadsEverythingUntilItIsBound) {
  EXPECT_TRUE(read_text_file(at("d")));
  EXPECT_TRUE(may_name("/nowhere"));
}

TEST_F(ReadRoots, ABoundProcessReadsBelowItsFoldersAlone) {
  const auto reads = [&](const std::string& name, bool expected) {
    return holds_in_child([&] {
      if (!bind_reads_below({at("open")})) return false;
      return read_text_file(at(name)).has_value() == expected;
    });
  };
  EXPECT_TRUE(reads("open/a", true));
  EXPECT_TRUE(reads("open/deep/b", true));
  EXPECT_TRUE(reads("inward", false));  // a link from outside, which would say that it is there
  EXPECT_TRUE(reads("open/link", false));
  EXPECT_TRUE(reads("open/../d", false));
  EXPECT_TRUE(reads("d", false));
  EXPECT_TRUE(reads("openly/c", false));  // a longer name is another folder
}

TEST_F(ReadRoots, WhatLiesOutsideIsNotSaidToBeAbsent) {
  EXPECT_TRUE(holds_in_child([&] {
    if (!bind_reads_below({at("open")})) return false;
    const auto there = read_text_file(at("d")), absent = read_text_file(at("e"));
    return !there && !absent && there.error().front().message == absent.error().front().message &&
           read_text_file(at("open/e")).error().front().message == "cannot be read";
  }));
}

// A link inside would otherwise tell by its target whether a file outside is there.
TEST_F(ReadRoots, ALinkToNothingIsRefusedAsALinkOutIs) {
  fs::create_symlink(folder_ / "nowhere", folder_ / "open/dead");
  EXPECT_TRUE(holds_in_child([&] {
    if (!bind_reads_below({at("open")})) return false;
    const auto out = read_text_file(at("open/link")), dead = read_text_file(at("open/dead"));
    return !out && !dead && out.error().front().message == dead.error().front().message &&
           !may_name(at("open/dead")) && !may_name(at("open/dead/below"));
  }));
}

// A path that leads through a folder outside would otherwise tell whether that is there.
TEST_F(ReadRoots, WhatLiesOutsideIsNotLookedAtOnTheWay) {
  EXPECT_TRUE(holds_in_child([&] {
    if (!bind_reads_below({at("open")})) return false;
    return read_text_file(at("openly/../open/a")) && read_text_file(at("nowhere/../open/a")) &&
           may_name(at("openly/../open/a")) && may_name(at("nowhere/../open/a"));
  }));
}

TEST_F(ReadRoots, PipesAndDevicesAreRefusedUnopened) {
  ASSERT_EQ(::mkfifo(at("open/pipe").c_str(), 0600), 0);
  EXPECT_TRUE(holds_in_child([&] {
    if (!bind_reads_below({at("open"), "/dev"})) return false;
    const auto pipe = read_text_file(at("open/pipe")), device = read_text_file("/dev/zero");
    return !pipe && pipe.error().front().message == "is a pipe or a device" && !device &&
           device.error().front().message == "is a pipe or a device";
  }));
}

TEST_F(ReadRoots, AFolderMayBeNamedByALinkOrWithASlash) {
  fs::create_directory_symlink(folder_ / "open", folder_ / "alias");
  EXPECT_TRUE(holds_in_child([&] {
    return bind_reads_below({at("alias/")}) && read_text_file(at("alias/a")) &&
           read_text_file(at("open/deep/b")) && !read_text_file(at("d"));
  }));
}

TEST_F(ReadRoots, AFolderThatIsNotThereIsAnError) {
  EXPECT_TRUE(holds_in_child([&] { return !bind_reads_below({at("none")}) && may_name("/x"); }));
}

}  // namespace
}  // namespace stepcast
