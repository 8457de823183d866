// SPDX-License-Identifier: Apache-2.0
// Nothing that is finished is lost: where results go when their files cannot be written.
#include <algorithm>

#include "faults/fault.h"
#include "places.h"
#include "scenario_text.h"

namespace stepcast::testing {
namespace {

namespace fs = std::filesystem;

// A run with programs in the place of ranks that compute nothing, reports in `out`, and a temporary
// folder of its own.
class KeptResults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!mpirun_is_here()) GTEST_SKIP() << "mpirun is not on PATH";
    fs::create_directory(folder_ / "out");
    fs::create_directory(folder_ / "tmp");
    write_file(folder_ / "scenario.json", two_local_stages());
    write_file(page(), "old");
  }
  std::string page() const { return folder_ / "out/page.html"; }
  Outcome validate(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{
        "validate", folder_ / "scenario.json", "--calibrate", "never", "--html", page(),
        "--md",     folder_ / "out/page.md"};
    words.insert(words.end(), more.begin(), more.end());
    return run_here(words);
  }
  // The temporary folder is the program's alone: what the test itself makes is elsewhere.
  Outcome run_here(const std::vector<std::string>& words,
                   const std::string& redirection = "") const {
    const Environment tmp("TMPDIR", folder_ / "tmp");
    return run(words, redirection);
  }
  // The only folder with kept results in the temporary folder.
  fs::path kept() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder_ / "tmp")) {
      if (entry.path().filename().string().starts_with("stepcast-kept-")) {
        found.push_back(entry.path());
      }
    }
    EXPECT_EQ(found.size(), 1u);
    return found.empty() ? fs::path() : found.front();
  }
  Folder folder_;
  Environment rank_{"STEPCAST_RANK_PROGRAM",
                    fs::path(program_folder()) / "tests/cli_fake_rank"};
};

TEST_F(KeptResults, AFinishedRunWhosePageCannotBeWrittenIsInTheTemporaryFolder) {
  const Outcome whole = validate();
  ASSERT_EQ(whole.code, 0) << whole.error;
  const std::string report = read_file(page());
  ASSERT_TRUE(has(report, "<html")) << report.substr(0, 100);
  write_file(page(), "old");
  const Fault fault("sync@/out/page.html:1");
  const Outcome result = validate();
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(has(result.error, "page.html: cannot be written: Input/output error"))
      << result.error;
  EXPECT_EQ(read_file(page()), "old");
  // All three results, none of which took its place.
  const fs::path place = kept();
  EXPECT_EQ(read_file(place / "page.html"), report);
  EXPECT_TRUE(has(read_file(place / "page.md"), "|")) << result.error;
  EXPECT_EQ(read_file(place / "standard-output.txt"), whole.out);
  EXPECT_TRUE(has(result.error, "the finished page.html is kept in " + (place / "").string()))
      << result.error;
}

// Every disk is full, memory's too: the results follow on standard output, each under its name.
TEST_F(KeptResults, WithoutRoomAnywhereTheyFollowOnStandardOutput) {
  const Outcome whole = validate();
  ASSERT_EQ(whole.code, 0) << whole.error;
  const std::string report = read_file(page());
  write_file(page(), "old");
  const Fault fault("write@/out/page.html:1+");
  const Outcome result = validate();
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(read_file(page()), "old");
  EXPECT_TRUE(has(result.error, "No space left on device")) << result.error;
  EXPECT_TRUE(has(result.error,
                  "no temporary folder has room: the finished page.html, page.md, "
                  "standard-output.txt follows on standard output"))
      << result.error;
  EXPECT_TRUE(has(result.out, "==> page.html <==\n" + report)) << result.out.substr(0, 200);
  EXPECT_TRUE(has(result.out, "==> standard-output.txt <==\n" + whole.out));
}

TEST_F(KeptResults, ABaselineThatCannotTakeItsPlaceIsKeptBesideTheReport) {
  const std::string baseline = folder_ / "out/baseline.json";
  const std::vector<std::string> update{"--baseline", baseline, "--update"};
  ASSERT_EQ(validate(update).code, 0);
  const std::string recorded = read_file(baseline);
  ASSERT_FALSE(recorded.empty());
  write_file(baseline, recorded + "\n");  // as a baseline the same, and another text
  const Fault fault("rename@/out/baseline.json:1");
  const Outcome result = validate(update);
  EXPECT_EQ(result.code, 2) << result.error;
  EXPECT_EQ(read_file(baseline), recorded + "\n");
  EXPECT_EQ(read_file(kept() / "baseline.json"), recorded);
}

// The run is finished, its report is not: the ranks' files are what the minutes went into.
TEST_F(KeptResults, TheFilesOfARunWhoseReportCannotBeMadeStay) {
  const Fault fault("open@/rank-0.json:1");
  const Outcome result = validate();
  EXPECT_EQ(result.code, 2) << result.error;
  EXPECT_TRUE(has(result.error, "rank-0.json: cannot be read: Too many open files"))
      << result.error;
  const std::string says = "the files of the finished run are kept in ";
  ASSERT_TRUE(has(result.error, says + folder_ / "tmp/stepcast-scratch-")) << result.error;
  const std::size_t begin = result.error.find(says) + says.size();
  const fs::path place = result.error.substr(begin, result.error.find('\n', begin) - begin);
  EXPECT_TRUE(fs::exists(place / "rank-0.json")) << place;
  EXPECT_TRUE(fs::exists(place / "rank-1.json")) << place;
}

// A folder goes without being opened: in it, the system refuses one call or all from there on.
TEST_F(KeptResults, AFolderGoesWhenNothingInItCanBeOpened) {
  for (const char* goes_on : {"", "+"}) {
    int empty = 0, number = 1;
    for (bool reached = true; reached; ++number) {
      ASSERT_LT(number, 100);
      const Fault fault("open@/stepcast-scratch-validate:" + std::to_string(number) + goes_on);
      const Outcome result = validate();
      reached = !fault.met().empty();
      if (has(result.error, "the files of the finished run are kept in ")) {
        fs::remove_all(folder_ / "tmp");
        fs::create_directory(folder_ / "tmp");
      } else {
        EXPECT_TRUE(fs::is_empty(folder_ / "tmp")) << fault.met() << result.error;
        ++empty;
      }
    }
    EXPECT_GT(empty, 3) << goes_on;  // the folder, its owner's file, its listing, the job
  }
}

TEST_F(KeptResults, WhatIsPrintedAgainAtOnceIsNotKept) {
  const Fault fault("write:1");
  const Outcome result = run_here({"show", "clusters"});
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(has(result.error, "error: standard output: No space left on device")) << result.error;
  EXPECT_TRUE(fs::is_empty(folder_ / "tmp"));
}

TEST_F(KeptResults, AForecastThatStandardOutputDoesNotTakeIsKept) {
  const Outcome whole = run_here(predict_words());
  ASSERT_EQ(whole.code, 0) << whole.error;
  EXPECT_EQ(run_here(predict_words(), ">/dev/full").code, 2);
  EXPECT_EQ(read_file(kept() / "standard-output.txt"), whole.out);
}

TEST_F(KeptResults, ARankWhoseDiskIsFullSaysSo) {
  const Environment real("STEPCAST_RANK_PROGRAM",
                         fs::path(program_folder()) / "stepcast-rank");
  const Fault fault("write:1+", "stepcast-rank");
  const Outcome result = validate({"--steps", "1", "--warmup", "0"});
  EXPECT_EQ(result.code, 2) << result.error;
  EXPECT_TRUE(has(result.error, "is stopped by its machine: ")) << result.error;
  EXPECT_TRUE(has(result.error, "No space left on device")) << result.error;
  EXPECT_EQ(read_file(page()), "old");
  EXPECT_TRUE(fs::is_empty(folder_ / "tmp"));
}

// The first pipe that is read says whether the ranks could be started, the second what they write.
TEST_F(KeptResults, RanksThatCannotBeHeardAreNotSaidToHaveDied) {
  const Fault fault("read@pipe:2");
  const Outcome result = validate();
  EXPECT_TRUE(has(fault.met(), "pipe:[")) << fault.met();
  EXPECT_EQ(result.code, 2) << result.error;
  EXPECT_TRUE(has(result.error, "what the ranks say cannot be read: Input/output error"))
      << result.error;
  EXPECT_TRUE(fs::is_empty(folder_ / "tmp"));
}

// A reference that is not read says nothing about numerics, least of all that they are wrong.
TEST_F(KeptResults, ARankThatCannotReadTheReferenceSaysSo) {
  const Environment real("STEPCAST_RANK_PROGRAM",
                         fs::path(program_folder()) / "stepcast-rank");
  for (const char* number : {"1", "2"}) {
    const Fault fault(std::string("read@/reference.bin:") + number, "stepcast-rank");
    const Outcome result = validate({"--steps", "1", "--warmup", "0"});
    EXPECT_TRUE(has(fault.met(), "/reference.bin")) << number;
    EXPECT_EQ(result.code, 2) << result.error;
    EXPECT_TRUE(has(result.error, "is stopped by its machine: ")) << result.error;
    EXPECT_TRUE(has(result.error, "reference.bin: cannot be read: Input/output error"))
        << result.error;
  }
}

}  // namespace
}  // namespace stepcast::testing
