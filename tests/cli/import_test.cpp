// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>

#include "core/each.h"
#include "places.h"
#include "program.h"

namespace stepcast {
namespace {

using testing::expect_refused;
using testing::Folder;
using testing::has;
using testing::run;

const std::string kTable = source_folder() + "/tests/data/imports/all_reduce_h100x16_a3_mega.txt";

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

struct Example {
  std::string file, cluster, text;
};

// The blocks of docs/formats/imports.md behind "An example, `FILE` of `CLUSTER`".
std::vector<Example> examples() {
  const std::string page = testing::read_file(source_folder() + "/docs/formats/imports.md");
  const std::regex head("An example, `([^`]+)` of `([^`]+)`[^\n]*\n\n```(json|text)\n");
  std::vector<Example> out;
  for (std::sregex_iterator at(page.begin(), page.end(), head), end; at != end; ++at) {
    const auto begin = static_cast<std::size_t>(at->position() + at->length());
    out.push_back({(*at)[1], (*at)[2], page.substr(begin, page.find("```", begin) - begin)});
  }
  return out;
}

TEST(Import, EveryExampleOfThePageIsReadAloneAndTogether) {
  const Folder folder;
  std::vector<std::string> all = {"calibrate", "--import"};
  for (const Example& example : examples()) {
    testing::write_file(folder / example.file, example.text);
    all.push_back(folder / example.file);
    const std::string profile = folder / ("of-" + example.file + ".json");
    const auto alone = run({"calibrate", "--import", folder / example.file, "--cluster",
                            example.cluster, "-o", profile});
    EXPECT_EQ(alone.code, 0) << example.file << ": " << alone.error;
    EXPECT_FALSE(has(alone.error, "left out")) << alone.error;
    EXPECT_TRUE(nlohmann::json::parse(testing::read_file(profile)).contains("curves"));
  }
  ASSERT_EQ(all.size(), 2 + 4u);  // a form of file each, and the project's own tables
  all.insert(all.end(), {"--cluster", "dgx-h100", "-o", folder / "mine.json"});
  const auto together = run(all);
  ASSERT_EQ(together.code, 0) << together.error;
  // Samples of the products, as fractions of 989 TFLOP/s: none is a time.
  const auto profile = nlohmann::json::parse(testing::read_file(folder / "mine.json"));
  AtLeast products(6);  // one of the trace, three each of both tables, and one is in both
  for (const auto& curve : profile["curves"]) {
    if (curve["operation"] != "gemm" || curve["precision"] != "bf16") continue;
    for (const auto& row : curve["samples"]["rows"]) {
      ++products;
      EXPECT_GT(row.back().get<double>(), 0.3) << row;
      EXPECT_LT(row.back().get<double>(), 1) << row;
    }
  }
}

// The command that once stored microseconds as efficiencies ("fit 5288 %"), on each table that is
// in us, and on those in other units.
TEST(Import, EveryShippedTableOfProductsAndAttentionGivesAProfileThatFits) {
  const Folder folder;
  AtLeast in_microseconds(20), in_other_units(10);
  const std::map<std::string, std::string> clusters = {
      {"a100-sxm4-80g", "dgx-a100-80g"}, {"a100-pcie-80g", "a100-pcie-8"},
      {"h100-sxm5-80g", "dgx-h100"},     {"h200-sxm5-141g", "dgx-h200"},
      {"b200-sxm6-180g", "dgx-b200"},    {"b300-sxm-288g", "dgx-b300"},
      {"gb200-186g", "gb200-nvl72"},     {"gb300-288g", "gb300-nvl72"}};
  for (const auto& entry :
       std::filesystem::directory_iterator(source_folder() + "/calibrate/published")) {
    if (entry.path().extension() != ".json") continue;
    const auto table = nlohmann::json::parse(testing::read_file(entry.path()));
    const std::string kind = table.value("kind", "");
    // No cluster ships with an L40S or a V100: their tables are of another device.
    const auto cluster = clusters.find(table.value("device", ""));
    const bool taken = (kind == "gemm" || kind == "attention") && cluster != clusters.end() &&
                       table.value("precision", "") != "fp4";
    const auto outcome = run({"calibrate", "--import", entry.path(), "--cluster",
                              taken ? cluster->second : "dgx-h100", "-o", folder / "mine.json"});
    if (!taken) {
      expect_refused(outcome);
      continue;
    }
    ++(table["unit"] == "us" ? in_microseconds : in_other_units);
    EXPECT_EQ(outcome.code, 0) << entry.path() << outcome.error;
    std::smatch fit;
    ASSERT_TRUE(std::regex_search(outcome.error, fit, std::regex("fit ([0-9.]+) %")))
        << outcome.error;
    EXPECT_LT(std::stod(fit[1]), 15) << entry.path() << outcome.error;
  }
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
      run({"calibrate", "--import", source_folder() + "/tests/data/imports/mm_mi300x.trace.json",
           "--cluster", "dgx-a100-80g", "-o", folder / "mine.json"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(has(outcome.error, "names no device: it counts as recorded on NVIDIA A100"))
      << outcome.error;
}

TEST(Import, AMistakeInYamlIsOneWhateverProgramTheFileIsFor) {
  const Folder folder;
  testing::write_file(folder / "run.yaml", "model: {hidden: 8\nlayers: [1, 2\n");
  const auto outcome = run({"import", folder / "run.yaml", "-o", folder / "out.json"});
  expect_refused(outcome);
  EXPECT_TRUE(has(outcome.error, "run.yaml:")) << outcome.error;
  EXPECT_FALSE(has(outcome.error, "Megatron")) << outcome.error;
  EXPECT_EQ(folder.files(), 1);
}

}  // namespace
}  // namespace stepcast
