// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/journal.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/crc.hpp>
#include <filesystem>
#include <string>

#include "core/file_size_limit.h"
#include "core/json_tree.h"
#include "core/temporary_folder.h"
#include "core/text/escape.h"

namespace stepcast {
namespace {

using testing::FileSizeLimit;
using testing::TemporaryFolder;

const Json kMachine = {{"processor", "Test 9000"}, {"cores", 2}};

Measurement some_measurement() {
  Measurement out;
  out.median_s = 1.0 / 3;  // no short decimal
  out.p10_s = 0.3;
  out.p90_s = 0.4;
  out.interval_s = MedianInterval{0.33, 0.34};
  out.n = 17;
  out.calls_per_sample = 3;
  out.rejected = {1, 2, 3, 4};
  out.stopped = Stop::kPrecise;
  return out;
}

Journal opened(const std::string& file, const Json& machine = kMachine) {
  auto journal = Journal::open(file, machine);
  EXPECT_TRUE(journal) << to_string(journal.error());
  return std::move(*journal);
}

void add(Journal& journal, const std::string& key, const std::string& extra = "{}") {
  const auto appended = journal.append({key, some_measurement(), Json::parse(extra)});
  EXPECT_TRUE(appended) << to_string(appended.error());
}

// The error of opening `file`, as the user reads it, without the folder.
std::string refusal(const TemporaryFolder& folder, const std::string& file,
                    const Json& machine = kMachine) {
  const auto journal = Journal::open(folder / file, machine);
  if (journal) return "opened";
  std::string text = to_string(journal.error().front());
  const std::string place = folder / "";
  EXPECT_TRUE(text.starts_with(place)) << text;
  return text.substr(place.size());
}

TEST(Journal, ANewRunFindsThePointsOfTheLastOneToTheLastBit) {
  const TemporaryFolder folder;
  {
    Journal journal = opened(folder / "j");
    EXPECT_EQ(journal.find("gemm 1 2 3"), nullptr);
    add(journal, "gemm 1 2 3", R"({"z": 1, "a": [2]})");
    add(journal, "norm 4");
  }
  const Journal again = opened(folder / "j");
  EXPECT_EQ(again.size(), 2u);
  const JournalPoint* point = again.find("gemm 1 2 3");
  ASSERT_NE(point, nullptr);
  EXPECT_EQ(json_text(point->extra), R"({"z":1,"a":[2]})");
  const Measurement& found = point->measurement;
  EXPECT_EQ(found.median_s, 1.0 / 3);
  EXPECT_EQ(found.p10_s, 0.3);
  EXPECT_EQ(found.p90_s, 0.4);
  EXPECT_EQ(found.interval_s->low, 0.33);
  EXPECT_EQ(found.interval_s->high, 0.34);
  EXPECT_EQ(found.n, 17);
  EXPECT_EQ(found.calls_per_sample, 3);
  EXPECT_EQ(found.rejected, (Rejected{1, 2, 3, 4}));
  EXPECT_EQ(found.stopped, Stop::kPrecise);
}

TEST(Journal, AMedianWithoutAnIntervalStaysWithout) {
  const TemporaryFolder folder;
  Measurement rough = some_measurement();
  rough.interval_s.reset();
  {
    Journal journal = opened(folder / "j");
    ASSERT_TRUE(journal.append({"a", rough, "{}"}));
  }
  EXPECT_FALSE(opened(folder / "j").find("a")->measurement.interval_s);
}

TEST(Journal, EveryLengthOfAKilledRunOpensAndGoesOn) {
  const TemporaryFolder folder;
  {
    Journal journal = opened(folder / "whole");
    add(journal, "a");
    add(journal, "b");
  }
  const std::string text = folder.text("whole");
  const std::size_t header = text.find('\n') + 1;
  const std::size_t first = text.find('\n', header) + 1;
  for (std::size_t length = 0; length <= text.size(); ++length) {
    folder.write("torn", text.substr(0, length));
    {
      Journal journal = opened(folder / "torn");
      const std::size_t points = length == text.size() ? 2 : length >= first ? 1 : 0;
      ASSERT_EQ(journal.size(), points) << length;
      add(journal, "c");
    }
    const Journal again = opened(folder / "torn");
    ASSERT_NE(again.find("c"), nullptr) << length;
    ASSERT_EQ(again.find("a") != nullptr, length >= first) << length;
  }
}

TEST(Journal, ALastLineOfZerosIsTornToo) {
  const TemporaryFolder folder;
  {
    Journal journal = opened(folder / "j");
    add(journal, "a");
  }
  folder.write("j", folder.text("j") + std::string(40, '\0') + "\n");
  EXPECT_EQ(opened(folder / "j").size(), 1u);
  EXPECT_EQ(folder.text("j").find('\0'), std::string::npos);
}

// A line that ends was written whole, so what is wrong in the last one came later.
TEST(Journal, AFlippedByteOfTheLastLineIsToldToo) {
  const TemporaryFolder folder;
  {
    Journal journal = opened(folder / "j");
    for (const char* key : {"a", "b"}) add(journal, key);
  }
  const std::string good = folder.text("j");
  const std::size_t last = good.rfind('\n', good.size() - 2) + 1;
  ASSERT_GT(last, 1u);
  for (std::size_t at = last; at + 1 < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    if (bad[at] == '\n' || bad[at] == '\0') continue;
    folder.write("j", bad);
    const Errors errors = Journal::check(folder / "j");
    ASSERT_EQ(errors.size(), 1u) << at;
    EXPECT_NE(to_string(errors.front()).find("line 3"), std::string::npos) << at;
  }
}

// A line may still be JSON, and still a measurement: a digit changed on the disk, or by hand.
TEST(Journal, EveryLineThatWasChangedIsNamedWithTheWayOut) {
  const TemporaryFolder folder;
  {
    Journal journal = opened(folder / "j");
    for (const char* key : {"a", "b", "c"}) add(journal, key);
  }
  const std::string good = folder.text("j");
  std::string bad = good;
  const std::size_t second = bad.find("\"key\":\"b\"");
  bad.replace(bad.find("0.33", second), 4, "0.34");
  folder.write("j", bad);
  const std::string way_out =
      "j: crc32: line 3 was changed or damaged: its checksum is another (remove line 3 to measure "
      "its point again)";
  EXPECT_EQ(refusal(folder, "j"), way_out);
  EXPECT_EQ(folder.text("j"), bad);
  // All of them, so that one look at the file is enough.
  bad.replace(bad.find("0.33"), 4, "0.35");
  folder.write("j", bad);
  const Errors errors = Journal::check(folder / "j");
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_NE(errors[0].message.find("line 2"), std::string::npos);
  EXPECT_NE(errors[1].message.find("line 3"), std::string::npos);
  // The way out leads out.
  const auto begin_of = [&](int line) {
    std::size_t at = 0;
    for (int i = 1; i < line; ++i) at = good.find('\n', at) + 1;
    return at;
  };
  folder.write("j", good.substr(0, begin_of(2)) + good.substr(begin_of(4)));
  const Journal again = opened(folder / "j");
  EXPECT_EQ(again.size(), 1u);
  EXPECT_NE(again.find("c"), nullptr);
}

TEST(Journal, AnyChangedByteOfAPointIsFound) {
  const TemporaryFolder folder;
  {
    Journal journal = opened(folder / "j");
    add(journal, "a");
    add(journal, "b");
  }
  const std::string good = folder.text("j");
  const std::size_t begin = good.find('\n') + 1, end = good.find('\n', begin);
  ASSERT_GT(end, begin + 100);
  for (std::size_t at = begin; at < end; ++at) {
    std::string bad = good;
    bad[at] = bad[at] == '7' ? '8' : '7';
    folder.write("j", bad);
    ASSERT_EQ(Journal::check(folder / "j").size(), 1u) << at;
  }
}

TEST(Journal, AChangedHeaderIsFoundAndAFileThatIsNotThereIsNoFault) {
  const TemporaryFolder folder;
  opened(folder / "j");
  std::string bad = folder.text("j");
  bad.replace(bad.find("9000"), 4, "9001");
  folder.write("j", bad);
  EXPECT_EQ(refusal(folder, "j"),
            "j: crc32: line 1 was changed or damaged: its checksum is another (remove the file to "
            "start again)");
  EXPECT_TRUE(Journal::check(folder / "none").empty());
}

TEST(Journal, APointThatIsMeasuredAgainReplacesTheOldOne) {
  const TemporaryFolder folder;
  {
    Journal journal = opened(folder / "j");
    add(journal, "a");
    Measurement better = some_measurement();
    better.n = 99;
    ASSERT_TRUE(journal.append({"a", better, "{}"}));
    EXPECT_EQ(journal.find("a")->measurement.n, 99);
  }
  const Journal again = opened(folder / "j");
  EXPECT_EQ(again.size(), 1u);
  EXPECT_EQ(again.find("a")->measurement.n, 99);
}

TEST(Journal, PointsOfAnotherMachineAreRefused) {
  const TemporaryFolder folder;
  {
    Journal journal = opened(folder / "j");
    add(journal, "a");
  }
  const std::string before = folder.text("j");
  EXPECT_EQ(refusal(folder, "j", {{"processor", "Test 9000"}, {"cores", 4}}),
            "j: machine.cores: the points are of another machine: 2 there, 4 here (measure there, "
            "or remove the file to start again on this machine)");
  EXPECT_EQ(refusal(folder, "j", {{"processor", "Test 9000"}, {"cores", 2}, {"blas", "x"}})
                .find("j: machine.blas: the points are of another machine: null there"),
            0u);
  EXPECT_EQ(folder.text("j"), before);
}

TEST(Journal, AnotherFormatIsRefused) {
  const TemporaryFolder folder;
  folder.write("j", R"({"stepcast_journal": 1, "machine": {}})"
                    "\n");
  EXPECT_EQ(refusal(folder, "j"),
            "j: stepcast_journal: format 1 is not supported (this version reads format 2: remove "
            "the file to start again)");
}

// A header as the program writes it, with the checksum of what stands before it.
std::string header(const std::string& keys) {
  const std::string body = R"({"stepcast_journal":2)" + keys;
  boost::crc_32_type crc;
  crc.process_bytes(body.data(), body.size());
  return fmt::format("{},\"crc32\":\"{:08x}\"}}\n", body, crc.checksum());
}

TEST(Journal, AHeaderKeepsItsBytes) {
  const TemporaryFolder folder;
  opened(folder / "j");
  EXPECT_EQ(folder.text("j"), header(R"(,"machine":{"processor":"Test 9000","cores":2})"));
}

TEST(Journal, AHeaderWithAnotherKeyOrWithoutAMachineIsRefused) {
  const TemporaryFolder folder;
  const std::string way_out = "measure there, or remove the file to start again on this machine)";
  folder.write("j", header(""));
  EXPECT_EQ(refusal(folder, "j"), "j: machine: is required and missing (" + way_out);
  folder.write("j", header(R"(,"machine":"here")"));
  EXPECT_EQ(refusal(folder, "j"),
            "j: machine: does not say which machine its points are of (" + way_out);
  folder.write("j", header(R"(,"machine":{},"machines":{})"));
  const std::string unknown = refusal(folder, "j");
  EXPECT_EQ(unknown.find("j: machines: "), 0u) << unknown;
  EXPECT_NE(unknown.find(way_out), std::string::npos) << unknown;
}

TEST(Journal, AFileOfAnotherKindIsLeftAlone) {
  const TemporaryFolder folder;
  for (const std::string text : {"a letter to my aunt", "a letter\nto my aunt\n",
                                 "{\"stepcast\": 1}", "{\"stepcast\": 1}\n", "{}\n", "\n"}) {
    folder.write("j", text);
    EXPECT_EQ(refusal(folder, "j"),
              "j: stepcast_journal: is not a journal of measurements (name another file)");
    EXPECT_EQ(folder.text("j"), text);
  }
}

TEST(Journal, AFullDiskIsAnErrorAndKeepsTheFinishedPoints) {
  const TemporaryFolder folder;
  {
    Journal journal = opened(folder / "j");
    add(journal, "a");
    const std::string before = folder.text("j");
    {
      const FileSizeLimit full(before.size() + 30);  // half of a line fits
      const auto appended = journal.append({"b", some_measurement(), "{}"});
      ASSERT_FALSE(appended);
      const std::string text = to_string(appended.error().front());
      EXPECT_NE(text.find("j: cannot be written: File too large (make room and run again: its 1 "
                          "finished points are kept)"),
                std::string::npos)
          << text;
    }
    EXPECT_EQ(folder.text("j"), before);
    EXPECT_EQ(journal.find("b"), nullptr);
    add(journal, "c");  // there is room again
  }
  const Journal again = opened(folder / "j");
  EXPECT_EQ(again.size(), 2u);
  EXPECT_NE(again.find("c"), nullptr);
}

TEST(Journal, ADeviceWithoutRoomSaysSo) {
  const auto journal = Journal::open("/dev/full", kMachine);
  ASSERT_FALSE(journal);
  EXPECT_EQ(to_string(journal.error().front()).find("/dev/full: cannot be written: No space left"),
            0u);
}

TEST(Journal, TwoRunsDoNotWriteOneFile) {
  const TemporaryFolder folder;
  {
    const Journal first = opened(folder / "j");
    EXPECT_EQ(refusal(folder, "j"),
              "j: another run is writing it (wait for that run, or name another file)");
  }
  EXPECT_EQ(refusal(folder, "j"), "opened");  // the first has ended
}

TEST(Journal, AFolderThatIsNotThereIsAnError) {
  const TemporaryFolder folder;
  EXPECT_EQ(refusal(folder, "none/j"),
            "none/j: cannot be opened: No such file or directory (name a file that you may write "
            "to)");
}

}  // namespace
}  // namespace stepcast
