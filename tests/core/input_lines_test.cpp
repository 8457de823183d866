// SPDX-License-Identifier: Apache-2.0
#include "core/input_lines.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <vector>

namespace stepcast {
namespace {

using Kind = InputLines::Kind;

struct Line {
  Kind kind;
  std::string text;
  bool operator==(const Line&) const = default;
};

// The lines of a pipe into which another thread writes.
std::vector<Line> lines_of(const std::string& text, std::size_t longest) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  std::thread writer([&] {
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t put = ::write(ends[1], text.data() + at, text.size() - at);
      if (put <= 0) break;
      at += static_cast<std::size_t>(put);
    }
    ::close(ends[1]);
  });
  InputLines lines(ends[0], longest);
  std::vector<Line> out;
  std::string line;
  for (Kind kind = lines.next(line); kind != Kind::kEnd; kind = lines.next(line)) {
    out.push_back({kind, line});
  }
  writer.join();
  ::close(ends[0]);
  return out;
}

TEST(InputLines, ComeWithoutTheirLineFeed) {
  const std::vector<Line> expected{{Kind::kWhole, "one"}, {Kind::kWhole, ""}, {Kind::kWhole, "2"}};
  EXPECT_EQ(lines_of("one\n\n2\n", 10), expected);
  EXPECT_EQ(lines_of("one\n\n2", 10), expected);  // the last may lack it
  EXPECT_TRUE(lines_of("", 10).empty());
}

TEST(InputLines, KeepAllBytesAndLinesLongerThanABlock) {
  const std::string zeros(3, '\0'), large(200'000, 'x');
  const std::vector<Line> expected{{Kind::kWhole, zeros}, {Kind::kWhole, large}};
  EXPECT_EQ(lines_of(zeros + "\n" + large + "\n", large.size()), expected);
}

TEST(InputLines, ThatAreTooLongAreDropped) {
  const auto found = lines_of(std::string(200'000, 'x') + "\nshort\n" + std::string(11, 'y'), 10);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].kind, Kind::kTooLong);
  EXPECT_EQ(found[1], (Line{Kind::kWhole, "short"}));
  EXPECT_EQ(found[2].kind, Kind::kTooLong);
  EXPECT_EQ(lines_of(std::string(10, 'y'), 10).front().kind, Kind::kWhole);
}

TEST(InputLines, ThatCannotBeReadAreNotTakenForTheirEnd) {
  const int folder = ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);  // a read says EISDIR
  InputLines lines(folder, 10);
  std::string line;
  EXPECT_EQ(lines.next(line), Kind::kEnd);
  EXPECT_EQ(lines.failed(), EISDIR);
  ::close(folder);
}

// Whoever started the program may have left its input so.
TEST(InputLines, OfAnInputThatDoesNotWaitAreWaitedFor) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_NONBLOCK), 0);
  std::thread writer([&] {
    pollfd emptied{ends[0], POLLIN, 0};
    EXPECT_EQ(::poll(&emptied, 1, 20), 0);  // the reader comes first
    EXPECT_EQ(::write(ends[1], "late\n", 5), 5);
    ::close(ends[1]);
  });
  InputLines lines(ends[0], 10);
  std::string line;
  EXPECT_EQ(lines.next(line), Kind::kWhole);
  EXPECT_EQ(line, "late");
  EXPECT_EQ(lines.next(line), Kind::kEnd);
  EXPECT_EQ(lines.failed(), 0);
  writer.join();
  ::close(ends[0]);
}

}  // namespace
}  // namespace stepcast
