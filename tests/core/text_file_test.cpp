// SPDX-License-Identifier: Apache-2.0
#include "core/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <thread>

#include "core/temporary_folder.h"

namespace stepcast {
namespace {

std::string refusal_of(const std::string& file, const ReadLimits& limits = {}) {
  const auto read = read_text_file(file, limits);
  return read ? "" : to_string(read.error().front());
}

TEST(TextFile, IsReadWhole) {
  const testing::TemporaryFolder folder;
  const std::string text = std::string("a\r\nb\0c", 6) + std::string(100'000, 'x');
  folder.write("long", text);
  folder.write("empty", "");
  EXPECT_EQ(read_text_file(folder / "long").value(), text);
  EXPECT_EQ(read_text_file(folder / "empty").value(), "");
}

TEST(TextFile, ThatIsNoneIsAnErrorWithItsName) {
  const testing::TemporaryFolder folder;
  for (const char* name : {"missing", "."}) {
    const auto read = read_text_file(folder / name);
    ASSERT_FALSE(read) << name;
    EXPECT_TRUE(to_string(read.error()).starts_with(folder / name)) << to_string(read.error());
  }
}

// A terabyte without a block on the disk, and a file that says that it has nothing and never ends.
TEST(TextFile, ThatIsTooLargeIsRefused) {
  const testing::TemporaryFolder folder;
  folder.write("sparse", "");
  ASSERT_EQ(::truncate((folder / "sparse").c_str(), off_t{1} << 40), 0);
  EXPECT_EQ(refusal_of(folder / "sparse"),
            folder / "sparse" +
                ": is larger than 64 MiB (no file of this kind is that large: check "
                "the path)");
  folder.write("four", "1234");
  EXPECT_EQ(refusal_of(folder / "four", {.most_bytes = 4}), "");
  EXPECT_NE(refusal_of(folder / "four", {.most_bytes = 3}), "");
}

TEST(TextFile, OtherThanPlainTextIsRefusedByItsName) {
  const testing::TemporaryFolder folder;
  folder.write("packed", "\x1f\x8b\x08 and more");
  folder.write("wide", std::string("\xff\xfe{\0}\0", 6));
  for (const char* name : {"packed", "wide"}) {
    const std::string whole = refusal_of(folder / name);
    EXPECT_NE(whole.find(name[0] == 'p' ? "gunzip -k" : "UTF-16"), std::string::npos) << whole;
    const auto by_lines = read_lines(folder / name, 100, {}, [](const FileLine&) {});
    ASSERT_FALSE(by_lines) << name;
    EXPECT_EQ(to_string(by_lines.error().front()), whole);
  }
  EXPECT_TRUE(read_text_file(folder / "packed", {.may_be_packed = true}));
}

TEST(TextFile, DevicesAreRefused) {
  for (const char* device : {"/dev/zero", "/dev/urandom", "/dev/null"}) {
    EXPECT_EQ(refusal_of(device), std::string(device) + ": is a device (name a file or a pipe)");
  }
}

// `stepcast predict <(command)` reads one. Its writer may come later, and may write in pieces.
TEST(TextFile, PipesAreReadToTheirEnd) {
  const testing::TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const std::string text(200'000, 'x');  // more than a pipe holds
  std::thread writer([&] { folder.write("pipe", text); });
  EXPECT_EQ(read_text_file(folder / "pipe").value(), text);
  writer.join();
}

TEST(TextFile, PipesIntoWhichNobodyWritesAreGivenUp) {
  const testing::TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(refusal_of(folder / "pipe", {.silence_s = 0.05}),
            folder / "pipe" +
                ": is a pipe that sent nothing for 0.05 s (start the command that "
                "writes into it)");
}

// Such files have no end, and are no pipes either.
TEST(TextFile, FilesOfTheKernelThatWaitForMoreAreGivenUp) {
  if (::access("/proc/kmsg", R_OK) != 0) GTEST_SKIP() << "/proc/kmsg cannot be read";
  EXPECT_NE(refusal_of("/proc/kmsg", {.silence_s = 0.05}).find("has sent nothing for 0.05 s"),
            std::string::npos);
  const ReadLimits limits{.silence_s = 0.05};
  EXPECT_FALSE(read_lines("/proc/kmsg", 100, limits, [](const FileLine&) {}));
  EXPECT_FALSE(read_pieces("/proc/kmsg", limits, [](std::string_view) { return true; }));
}

}  // namespace
}  // namespace stepcast
