// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <sstream>

#include "core/json_tree.h"
#include "report/made_prediction.h"
#include "report/validation_json.h"
#include "report/validation_table.h"

namespace stepcast {
namespace {

using stepcast::testing::made_prediction;
using stepcast::testing::made_scenario;

MeasuredRun made_run() {
  MeasuredRun out;
  out.periods = 9;
  out.step_time = {8, 7.5, 9};
  out.bubble_fraction = {0.2, 0.15, 0.3};
  out.critical_rank = RankId(3);
  out.time.compute = Seconds(7);
  out.time.other = Seconds(1);
  out.peak_memory = 80;
  out.ranks.push_back({RankId(0), "node\"1\"", 0, Seconds(7), 0.1, 80, {80}, {}});
  out.numerics = Numerics{1e-7, 2e-7};
  return out;
}

// Twenty operations, the k-th off by k seconds.
Validation made_validation(const std::vector<Tolerance>& tolerances = {}) {
  MeasuredRun run = made_run();
  std::vector<OperationPrice> prices;
  for (int k = 0; k < 20; ++k) {
    const std::string name = "operation_" + std::to_string(k);
    run.operations.push_back({"s", name, Phase::kWeightGradient, 2, Seconds(1), Seconds(2)});
    prices.push_back({"s", name, Phase::kWeightGradient, 2, Seconds(2 + k), Provenance::kMeasured});
  }
  return compare(made_prediction(), std::move(run), prices, {NumericsLimits{}, tolerances});
}

std::size_t lines_with(const std::string& text, const std::string& part) {
  std::istringstream in(text);
  std::size_t count = 0;
  for (std::string line; std::getline(in, line);) count += line.find(part) != line.npos ? 1 : 0;
  return count;
}

bool has(const std::string& text, const std::string& part) { return lines_with(text, part) > 0; }

TEST(ValidationPage, ShowsAllOperationsAndWhyItFailed) {
  const Validation validation = made_validation({{"all", "step_time", 0.01}});
  const std::string page = validation_html(made_scenario(), validation, {});
  EXPECT_EQ(page, validation_html(made_scenario(), validation, {}));
  EXPECT_NE(page.find("Failed: step time"), page.npos);
  EXPECT_NE(page.find(validation.broken.front().title), page.npos);
  for (int k = 0; k < 20; ++k) {
    EXPECT_NE(page.find(">operation_" + std::to_string(k) + "<"), page.npos) << k;
  }
  std::istringstream in(page);
  boost::property_tree::ptree tree;
  EXPECT_NO_THROW(boost::property_tree::read_xml(in, tree));
}

TEST(ValidationJson, HasEveryKeyOfTheFormat) {
  const SortedJson out =
      SortedJson::parse(validation_json(made_scenario(), made_validation()).text());
  EXPECT_EQ(out["stepcast"], 1);
  EXPECT_EQ(out["predicted"]["step_time_s"], 10);
  EXPECT_EQ(out["measured"]["step_time_s"], 8);
  EXPECT_EQ(out["measured"]["step_time_p10_s"], 7.5);
  EXPECT_EQ(out["measured"]["step_time_p90_s"], 9);
  EXPECT_EQ(out["measured"]["bubble_fraction_p90"], 0.3);
  EXPECT_EQ(out["measured"]["time_s"]["compute"], 7);
  EXPECT_EQ(out["measured"]["ranks"][0]["host"], "node\"1\"");
  EXPECT_EQ(out["error"]["step_time_s"], 0.25);
  EXPECT_EQ(out["error"]["peak_memory_bytes"], 0.25);
  EXPECT_FALSE(out["error"].contains("tokens_per_s"));  // none measured: nothing to divide by
  EXPECT_EQ(out["covered"], false);                     // 8 s, the interval is 9 to 11 s
  EXPECT_EQ(out["operations"].size(), 20u);
  EXPECT_EQ(out["operations"][0]["phase"], "weight_gradient");
  EXPECT_EQ(out["operations"][0]["error"], 9.5);  // 21 s instead of 2 s
  EXPECT_EQ(out["numerics"]["parameter_relative_error"], 2e-7);
  EXPECT_EQ(out["passed"], true);
}

TEST(ValidationTable, ShowsTheOperationsThatDifferMost) {
  const std::string text = validation_table(made_scenario(), made_validation());
  EXPECT_EQ(lines_with(text, "operation_"), 15u);
  EXPECT_TRUE(has(text, "the 15 of 20 that differ most"));
  EXPECT_LT(text.find("operation_19"), text.find("operation_18"));
  EXPECT_FALSE(has(text, "operation_4 "));
  EXPECT_TRUE(has(text, "weight gradient"));
  EXPECT_FALSE(has(text, "\x1b"));
  EXPECT_TRUE(has(validation_table(made_scenario(), made_validation(), Form::kColored), "\x1b"));
}

TEST(ValidationTable, EndsWithTheVerdictAndItsReasons) {
  const std::string good = validation_table(made_scenario(), made_validation());
  EXPECT_TRUE(has(good, "passed: step time 10.00 s forecast, 8.000 s measured (+25.0 %)")) << good;
  const std::string bad =
      validation_table(made_scenario(), made_validation({{"all", "step_time", 0.1}}));
  EXPECT_TRUE(has(bad, "failed: ")) << bad;
  EXPECT_TRUE(has(bad, "step time is off by +25.00 %, beyond the limit of 10 %")) << bad;
  const std::string markdown = validation_table(
      made_scenario(), made_validation({{"all", "step_time", 0.1}}), Form::kMarkdown);
  EXPECT_TRUE(has(markdown, "- failed: ")) << markdown;
  EXPECT_TRUE(has(markdown, "| operation_19 | weight gradient |")) << markdown;
}

TEST(ValidationReport, OfOneRankAloneSaysWhatWasLeftOut) {
  Validation validation = made_validation();
  validation.alone = RankAlone{RankId(3), 16, {}, {{"messages between stages", 8, 8 << 20}}};
  const SortedJson out = SortedJson::parse(validation_json(made_scenario(), validation).text());
  EXPECT_EQ(out["alone"]["rank"], 3);
  EXPECT_EQ(out["alone"]["of_ranks"], 16);
  EXPECT_EQ(out["alone"]["left_out"][0]["calls_per_step"], 8);
  EXPECT_EQ(out["alone"]["left_out"][0]["bytes_per_step"], 8 << 20);
  for (const std::string& text : {validation_table(made_scenario(), validation),
                                  validation_table(made_scenario(), validation, Form::kMarkdown)}) {
    EXPECT_TRUE(has(text, "Rank 3 of 16 alone")) << text;
    EXPECT_TRUE(has(text, "- 8 messages between stages a step, 8.000 MiB")) << text;
    EXPECT_TRUE(has(text, "the loss means nothing")) << text;
    EXPECT_FALSE(has(text, "Numerics: ")) << text;
  }
  EXPECT_TRUE(has(validation_junit(made_scenario(), validation), "rank 3 alone"));
}

TEST(ValidationJunit, HasAFailurePerBrokenLimit) {
  const auto suites = [](const Validation& validation) {
    std::istringstream in(validation_junit(made_scenario(), validation).text());
    boost::property_tree::ptree out;
    boost::property_tree::read_xml(in, out);
    std::string failures;
    for (const auto& [name, suite] : out.get_child("testsuites")) {
      if (name == "testsuite") failures += suite.get<std::string>("<xmlattr>.failures");
    }
    return failures;
  };
  EXPECT_EQ(suites(made_validation()), "00");
  EXPECT_EQ(suites(made_validation({{"all", "step_time", 0.1}, {"all", "peak_memory", 0.1}})),
            "02");
}

TEST(BusyMachine, IsSaidInEveryFormatForPeople) {
  Validation validation = made_validation();
  // Others had 8 s of 20, the host of the virtual machine 1 s.
  validation.measured.load = MachineLoad{"node1", {20, 18, 1, 10}};
  const std::string said = "node1 was busy: while the steps were measured, other processes used 40";
  EXPECT_TRUE(has(validation_table(made_scenario(), validation), said));
  EXPECT_TRUE(has(validation_table(made_scenario(), validation, Form::kMarkdown), said));
  EXPECT_TRUE(has(validation_github(validation), "::warning title=busy machine::" + said));
  const SortedJson out = SortedJson::parse(validation_json(made_scenario(), validation).text());
  EXPECT_EQ(
      out["measured"]["machine_load"],
      (SortedJson{
          {"host", "node1"}, {"others_fraction", 0.4}, {"stolen_fraction", 0.05}, {"busy", true}}));
}

TEST(BusyMachine, AQuietOneIsNotMentioned) {
  Validation validation = made_validation();
  validation.measured.load = MachineLoad{"node1", {20, 10.2, 0, 10}};
  EXPECT_EQ(busy_machine_text(validation.measured), "");
  EXPECT_FALSE(has(validation_table(made_scenario(), validation), "busy"));
  const SortedJson out = SortedJson::parse(validation_json(made_scenario(), validation).text());
  EXPECT_FALSE(out["measured"]["machine_load"]["busy"].get<bool>());
}

}  // namespace
}  // namespace stepcast
