// SPDX-License-Identifier: Apache-2.0
// Tests that what cannot work is refused before work that takes long.
#include "calibrate/protocol/journal.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "faults/fault.h"
#include "layout/data_folders.h"
#include "scenario_text.h"

namespace stepcast::testing {
namespace {

namespace fs = std::filesystem;

std::string suite_text() {
  const SortedJson scenario{{"stepcast", 1},
                            {"model", "gpt2"},
                            {"cluster", {{"base", "dgx-a100-80g"}, {"nodes", 1}}},
                            {"training", {{"global_batch", 8}, {"sequence_length", 512}}}};
  return json_text(SortedJson{{"stepcast_suite", 1},
                              {"name", "made"},
                              {"cases",
                               {{{"id", "one"},
                                 {"source", "made for a test"},
                                 {"scenario", scenario},
                                 {"measured", {{"step_time_s", 1.0}}}}}}});
}

// A forecast reads models, clusters and profiles. A command that ends before its first forecast
// opens fewer files.
struct Counted {
  Outcome outcome;
  long opened;
};

Counted counted(const std::vector<std::string>& words) {
  const Fault none("");
  Outcome outcome = run(words);
  return {std::move(outcome), none.count("open")};
}

TEST(InputsFirst, CheckReadsItsBaselineBeforeItPredicts) {
  const Folder folder;
  const std::string suite = folder / "suite.json", baseline = folder / "baseline.json";
  write_file(suite, suite_text());
  const Counted update = counted({"check", suite, "--baseline", baseline, "--update"});
  ASSERT_EQ(update.outcome.code, 0) << update.outcome.error;
  const Counted whole = counted({"check", suite, "--baseline", baseline});
  ASSERT_EQ(whole.outcome.code, 0) << whole.outcome.error;
  int refused = 0;
  for (const char* text : {"{", "[]", R"({"stepcast_baseline": 2, "summary": {}, "cases": {}})",
                           R"({"stepcast_baseline": 1, "summary": {"t": {}}, "cases": {}})"}) {
    write_file(baseline, text);
    const Counted bad = counted({"check", suite, "--baseline", baseline});
    expect_refused(bad.outcome);
    EXPECT_TRUE(has(bad.outcome.error, baseline)) << bad.outcome.error;
    EXPECT_LT(bad.opened, whole.opened) << text;
    ++refused;
  }
  EXPECT_EQ(refused, 4);
}

TEST(InputsFirst, CheckKnowsTheRowsOfItsTolerancesBeforeItPredicts) {
  const Folder folder;
  write_file(folder / "suite.json", suite_text());
  const Counted whole = counted({"check", folder / "suite.json"});
  ASSERT_EQ(whole.outcome.code, 0) << whole.outcome.error;
  const Counted bad =
      counted({"check", folder / "suite.json", "--tolerance", "mad:step_time.bias=1"});
  expect_refused(bad.outcome);
  EXPECT_TRUE(has(bad.outcome.error, "did you mean 'made'?")) << bad.outcome.error;
  EXPECT_LT(bad.opened, whole.opened);
}

TEST(InputsFirst, AFolderWithoutRoomIsFoundBeforeTheFirstForecast) {
  const Folder folder;
  const Counted whole = counted(predict_words({"-o", folder / "out"}));
  ASSERT_EQ(whole.outcome.code, 0) << whole.outcome.error;
  const Fault full("write:1");
  const Outcome bad = run(predict_words({"-o", folder / "out"}));
  expect_refused(bad);
  EXPECT_TRUE(has(bad.error, "No space left on device")) << bad.error;
  EXPECT_TRUE(has(full.met(), "(deleted)")) << full.met();
  EXPECT_LT(full.count("open"), whole.opened);
}

Measurement some_measurement() {
  Measurement out;
  out.median_s = out.mean_s = out.p10_s = out.p90_s = 1e-3;
  out.n = 10;
  out.calls_per_sample = 1;
  out.stopped = Stop::kPrecise;
  return out;
}

// No rank is started: there is no program to start.
TEST(InputsFirst, ABadPointOfAJournalIsRefusedBeforeMeasuring) {
  const Folder folder;
  write_file(folder / "scenario.json", two_local_stages());
  const std::string place = folder / "mine.json.journal/2-ranks";
  fs::create_directories(place);
  const std::string file = place + "/rank-1.jsonl";
  {
    auto journal = Journal::open(file, Json::object());
    ASSERT_TRUE(journal);
    ASSERT_TRUE(journal->append({"a", some_measurement(), "{}"}));
    ASSERT_TRUE(journal->append({"b", some_measurement(), "{}"}));
  }
  std::string text = read_file(file);
  const std::string good = text;
  text.replace(text.find("0.001"), 5, "0.002");  // legal, and not what was measured
  write_file(file, text);
  const Environment rank("STEPCAST_RANK_PROGRAM", "/nowhere/stepcast-rank");
  const std::vector<std::string> words{"calibrate", folder / "scenario.json", "-o",
                                       folder / "mine.json"};
  const Outcome bad = run(words);
  expect_refused(bad);
  EXPECT_TRUE(has(bad.error, file + ": crc32: line 2 was changed or damaged: its checksum is "
                                    "another (remove line 2 to measure its point again)"))
      << bad.error;
  // The hint works: what is left is a journal, and the command goes on to its ranks.
  const std::size_t second = text.find('\n') + 1;
  text.erase(second, text.find('\n', second) + 1 - second);
  write_file(file, text);
  EXPECT_TRUE(Journal::check(file).empty());
  const Outcome on = run(words);
  EXPECT_FALSE(has(on.error, "crc32")) << on.error;
  EXPECT_TRUE(has(on.error, "/nowhere/stepcast-rank")) << on.error;
}

}  // namespace
}  // namespace stepcast::testing
