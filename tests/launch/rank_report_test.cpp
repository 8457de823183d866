// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_report.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "launch/rank_report_line.h"

namespace stepcast {
namespace {

// The lines that a reporter of rank 3 writes.
std::vector<std::string> written(const std::function<void(RankReporter&)>& report) {
  std::array<int, 2> pipe{};
  EXPECT_EQ(::pipe(pipe.data()), 0);
  RankReporter reporter(3, pipe[1]);
  report(reporter);
  ::close(pipe[1]);
  std::vector<std::string> lines{""};
  std::array<char, 1 << 16> buffer;
  for (ssize_t size; (size = ::read(pipe[0], buffer.data(), buffer.size())) > 0;) {
    for (const char letter : std::string(buffer.data(), static_cast<std::size_t>(size))) {
      if (letter == '\n') {
        lines.emplace_back();
      } else {
        lines.back() += letter;
      }
    }
  }
  ::close(pipe[0]);
  EXPECT_EQ(lines.back(), "");
  lines.pop_back();
  return lines;
}

RankReport read_one(const std::vector<std::string>& lines) {
  EXPECT_EQ(lines.size(), 1u);
  const auto read = read_rank_line(lines.at(0));
  EXPECT_TRUE(read.report) << lines.at(0);
  return read.report.value_or(RankReport{});
}

TEST(RankReport, IsALineOfJsonBehindAWord) {
  const auto lines = written([](RankReporter& reporter) { reporter.started(); });
  EXPECT_EQ(lines, std::vector<std::string>{R"(@stepcast {"rank":3,"event":"started"})"});
}

TEST(RankReport, OfProgressIsReadAsWritten) {
  const RankReport report = read_one(
      written([](RankReporter& reporter) { reporter.progress("gemm", 0, 12, "4096 x 4096"); }));
  EXPECT_EQ(report.rank, 3);
  EXPECT_EQ(report.event, RankEvent::kProgress);
  EXPECT_EQ(report.phase, "gemm");
  EXPECT_EQ(report.done, 0);
  EXPECT_EQ(report.total, 12);
  EXPECT_EQ(report.text, "4096 x 4096");
}

TEST(RankReport, OfEveryFailureIsReadAsWritten) {
  for (const RankFailure failure :
       {RankFailure::kOutOfMemory, RankFailure::kNumerics, RankFailure::kCommunication,
        RankFailure::kInput, RankFailure::kInternal}) {
    const RankReport report =
        read_one(written([&](RankReporter& reporter) { reporter.failed(failure, "because"); }));
    EXPECT_EQ(report.event, RankEvent::kFailed);
    EXPECT_EQ(report.failure, failure);
    EXPECT_EQ(report.text, "because");
  }
}

TEST(RankReport, KeepsQuotesControlCharactersAndUmlauts) {
  const std::string text = "a \"b\" \\ c\n\t\x01 \xC3\xBC \xF0\x9F\x98\x80";
  const RankReport report =
      read_one(written([&](RankReporter& reporter) { reporter.warning(text); }));
  EXPECT_EQ(report.text, text);
}

TEST(RankReport, ReplacesBytesThatAreNoText) {
  // A byte that never occurs; cut short; overlong, as E0 80 80 and F0 80 80 80 are; a surrogate;
  // above U+10FFFF.
  for (const std::string wrong : {"\xFF", "\xC3", "\xE2\x82", "\xC0\x80", "\xE0\x80\x80",
                                  "\xF0\x80\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80"}) {
    const RankReport report =
        read_one(written([&](RankReporter& reporter) { reporter.warning("a" + wrong + " b"); }));
    EXPECT_EQ(report.text, "a" + std::string(wrong.size(), '?') + " b");
  }
}

TEST(RankReport, OfAnyTextIsOneWriteOfAPipe) {
  // Six bytes for each control character, three for each euro sign.
  for (const std::string one : {"x", "\x01", "\xE2\x82\xAC"}) {
    std::string text;
    while (text.size() < 10'000) text += one;
    const auto lines = written([&](RankReporter& reporter) {
      reporter.progress(text, INT64_MIN, INT64_MIN, text);
      reporter.failed(RankFailure::kOutOfMemory, text);
    });
    ASSERT_EQ(lines.size(), 2u);
    for (const std::string& line : lines) {
      EXPECT_LE(line.size() + 1, std::size_t{PIPE_BUF});
      const auto report = read_rank_line(line).report;
      ASSERT_TRUE(report) << line;
      EXPECT_GT(report->text.size(), 100u);
      EXPECT_TRUE(text.starts_with(report->text));
    }
  }
}

TEST(RankReport, OfProgressIsNotWrittenForEveryStep) {
  // The first and the last are; what lies between comes in less than the quiet time, or some of it
  // is written: never all of it, because the loop would then take 200 s.
  const auto lines = written([](RankReporter& reporter) {
    for (int i = 0; i <= 1000; ++i) reporter.progress("steps", i, 1000);
  });
  ASSERT_GE(lines.size(), 2u);
  EXPECT_LT(lines.size(), 1001u);
  EXPECT_EQ(read_rank_line(lines.front()).report->done, 0);
  EXPECT_EQ(read_rank_line(lines.back()).report->done, 1000);
}

TEST(RankReport, ToAClosedFileIsLost) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  ::close(pipe[0]);
  ::close(pipe[1]);
  RankReporter(0, pipe[1]).failed(RankFailure::kInternal, "nobody hears");
}

TEST(RankLine, MayBeginWithWhatTheRankHadLeftUnfinished) {
  const auto read = read_rank_line(R"(half a line@stepcast {"rank":0,"event":"heartbeat"})");
  EXPECT_EQ(read.output, "half a line");
  ASSERT_TRUE(read.report);
  EXPECT_EQ(read.report->event, RankEvent::kHeartbeat);
}

TEST(RankLine, ThatIsNoReportIsOutput) {
  for (const std::string line :
       {"", "loss 3.2", "@stepcast", "@stepcast {", "@stepcast []", "@stepcast {}",
        R"(@stepcast {"rank":-1,"event":"started"})", R"(@stepcast {"rank":0,"event":"born"})",
        R"(@stepcast {"rank":"0","event":"started"})",
        R"(@stepcast {"rank":99999999999,"event":"started"})",
        R"(@stepcast {"rank":0,"event":"started"} and more)"}) {
    const auto read = read_rank_line(line);
    EXPECT_FALSE(read.report) << line;
    EXPECT_EQ(read.output, line);
  }
}

TEST(RankLine, OfAnUnknownKindOfFailureIsAFailure) {
  const auto read = read_rank_line(R"(@stepcast {"rank":0,"event":"failed","kind":"new"})");
  ASSERT_TRUE(read.report);
  EXPECT_EQ(read.report->event, RankEvent::kFailed);
  EXPECT_EQ(read.report->failure, RankFailure::kInternal);
}

}  // namespace
}  // namespace stepcast
