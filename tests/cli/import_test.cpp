// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "program.h"

namespace stepcast {
namespace {

using testing::expect_refused;
using testing::Folder;
using testing::has;
using testing::run;

const std::string kTable = STEPCAST_SOURCE_DIR "/tests/data/imports/all_reduce_h100x16_a3_mega.txt";

// Data parallel alone, gradients all-reduced among the 16 GPUs of the table.
nlohmann::json predicted(const std::vector<std::string>& more) {
  std::vector<std::string> words = {
      "predict",  "--model", "gpt2-xl", "--cluster", "gcp-a3-megax2",  "--dp", "16", "--zero", "0",
      "--format", "json",    "--seq",   "1024",      "--global-batch", "16"};
  words.insert(words.end(), more.begin(), more.end());
  const auto outcome = run(words);
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  return outcome.json();
}

TEST(Import, AForecastOfTheMeasuredGroupRestsOnTheTable) {
  const Folder folder;
  const auto imported = run(
      {"calibrate", "--import", kTable, "--cluster", "gcp-a3-mega", "-o", folder / "mine.json"});
  ASSERT_EQ(imported.code, 0) << imported.error;
  EXPECT_EQ(imported.out, "");
  EXPECT_TRUE(has(imported.error, "all_reduce of 16 GPUs in 2 NVLink domains, 31 sizes"));
  const auto shipped = predicted({}), own = predicted({"--profile", folder / "mine.json"});
  EXPECT_NE(own["time_s"]["exposed"]["dp"], shipped["time_s"]["exposed"]["dp"]);
  EXPECT_EQ(own["time_s"]["compute"], shipped["time_s"]["compute"]);  // of the shipped profile
}

TEST(Import, WithAnErrorNothingIsWritten) {
  const Folder folder;
  const std::string profile = folder / "mine.json";
  testing::write_file(folder / "notes.txt", "nothing measured");
  const std::vector<std::vector<std::string>> wrong = {
      {"calibrate", "--import", kTable, "-o", profile},  // of which machine?
      {"calibrate", "--import", kTable, "--cluster", "dgx-a100-80g", "-o", profile},
      {"calibrate", "--import", kTable, folder / "notes.txt", "--cluster", "gcp-a3-mega", "-o",
       profile},
      {"calibrate", "--import", kTable, "--cluster", "gcp-a3-mega", "--tp", "2", "-o", profile},
      {"calibrate", "--import", kTable, "--cluster", "gcp-a3-mega"},
      {"calibrate", "scenario.json", "--cluster", "gcp-a3-mega", "-o", profile, "--import",
       kTable}};
  for (const auto& words : wrong) expect_refused(run(words));
  EXPECT_EQ(folder.files(), 1);
  expect_refused(run({"calibrate", "--import", folder / "notes.txt", "--cluster", "dgx-h100", "-o",
                      folder / "notes.txt"}));
  EXPECT_EQ(testing::read_file(folder / "notes.txt"), "nothing measured");
}

TEST(Import, ATableWithoutRowsIsNoMeasurement) {
  const Folder folder;
  const std::string table = testing::read_file(kTable);
  const std::string last_of_head = "(us)";  // of the line of units
  const auto end = table.find("\n", table.find(last_of_head));
  testing::write_file(folder / "head.txt", table.substr(0, end + 1));
  const auto outcome = run({"calibrate", "--import", folder / "head.txt", "--cluster",
                            "gcp-a3-mega", "-o", folder / "mine.json"});
  expect_refused(outcome);
  EXPECT_EQ(folder.files(), 1u);
}

TEST(Import, ATraceThatNamesNoDeviceSaysForWhichItCounts) {
  const Folder folder;
  const auto outcome =
      run({"calibrate", "--import", STEPCAST_SOURCE_DIR "/tests/data/imports/mm_mi300x.trace.json",
           "--cluster", "dgx-a100-80g", "-o", folder / "mine.json"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(has(outcome.error, "names no device: it counts as recorded on NVIDIA A100"))
      << outcome.error;
}

}  // namespace
}  // namespace stepcast
