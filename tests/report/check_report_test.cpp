// SPDX-License-Identifier: Apache-2.0
#include "report/check_report.h"

#include <gtest/gtest.h>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "validate/made_cases.h"

namespace stepcast {
namespace {

using boost::property_tree::ptree;
using nlohmann::json;
using stepcast::testing::failed_case;
using stepcast::testing::made_case;
using stepcast::testing::unsupported_case;

CheckReport made_report() {
  CheckReport report;
  CaseResult good = made_case("good", 1.1, 1);
  good.tags = {"bf16"};
  report.cases = {good,
                  unsupported_case("moe", "mixture of <experts> & more is not supported yet")};
  report.summary = summarise(report.cases);
  return report;
}

const GateOutcome kBroken{{{"all: step_time.mean_abs_error", "0.55 is above the limit 0.1"}},
                          {{"s/new", "is not in the baseline"}}};

ptree xml_of(const std::string& text) {
  std::istringstream in(text);
  ptree out;
  boost::property_tree::read_xml(in, out);
  return out;
}

TEST(CheckJson, GivesEveryCaseWithPredictionMeasurementAndError) {
  const json out = json::parse(check_json(made_report()).text());
  EXPECT_EQ(out["passed"], true);
  ASSERT_EQ(out["cases"].size(), 2u);
  EXPECT_EQ(out["cases"][0]["predicted"]["step_time_s"], 1.1);
  EXPECT_EQ(out["cases"][0]["measured"]["step_time_s"], 1);
  EXPECT_NEAR(out["cases"][0]["error"]["step_time"], 0.1, 1e-12);
  EXPECT_FALSE(out["cases"][0].contains("failed"));
  EXPECT_TRUE(out["cases"][1]["failed"].is_string());
  EXPECT_TRUE(out["cases"][1]["error"].empty());
  const json& all = out["summary"]["all"];
  EXPECT_EQ(all["count"], 2);
  EXPECT_EQ(all["failed"], 0);
  EXPECT_EQ(all["not_supported"], 1);
  EXPECT_TRUE(out["cases"][1]["not_supported"]);
  EXPECT_NEAR(all["step_time"]["mean_abs_error"], 0.1, 1e-12);
  EXPECT_NEAR(all["step_time"]["bias"], 0.1, 1e-12);
  EXPECT_FALSE(all.contains("peak_memory"));
  EXPECT_TRUE(out["summary"]["suites"].contains("s"));
  EXPECT_TRUE(out["summary"]["tags"].contains("bf16"));
}

TEST(CheckJson, ListsWhatTheGateFound) {
  const json out = json::parse(check_json(made_report(), kBroken).text());
  EXPECT_EQ(out["passed"], false);
  EXPECT_EQ(out["broken"].size(), 1u);
  EXPECT_EQ(out["changes"][0]["what"], "s/new");
}

TEST(CheckJunit, IsWellFormedAndCountsItsCases) {
  const ptree xml = xml_of(check_junit(made_report(), kBroken));
  std::size_t suites = 0;
  for (const auto& [name, suite] : xml.get_child("testsuites")) {
    if (name != "testsuite") continue;
    ++suites;
    std::size_t cases = 0, failures = 0, skipped = 0;
    for (const auto& [child, test] : suite) {
      if (child != "testcase") continue;
      ++cases;
      failures += test.count("failure");
      skipped += test.count("skipped");
    }
    EXPECT_EQ(suite.get<std::size_t>("<xmlattr>.tests"), cases);
    EXPECT_EQ(suite.get<std::size_t>("<xmlattr>.failures"), failures);
    EXPECT_EQ(suite.get<std::size_t>("<xmlattr>.skipped"), skipped);
  }
  EXPECT_EQ(suites, 2u);  // "s" and the gate
}

TEST(CheckJunit, KeepsTheReasonThroughItsEscapes) {
  const ptree xml = xml_of(check_junit(made_report()));
  std::string reason;
  for (const auto& [name, suite] : xml.get_child("testsuites")) {
    if (name != "testsuite") continue;
    for (const auto& [child, test] : suite) {
      reason += test.get("skipped.<xmlattr>.message", "");
    }
  }
  EXPECT_EQ(reason, "mixture of <experts> & more is not supported yet");
}

TEST(CheckGithub, EscapesWhatItsCommandsWouldRead) {
  GateOutcome gate;
  gate.broken = {{"s: a,b", "50 %\nof it"}};
  const std::string text = check_github(made_report(), gate);
  EXPECT_NE(text.find("::error title=s%3A a%2Cb::50 %25%0Aof it\n"), std::string::npos) << text;
  EXPECT_NE(text.find("::warning title=s::1 of 2 cases not predicted"), std::string::npos) << text;
}

TEST(CheckTable, NamesRowsFailuresAndBrokenLimits) {
  const std::string text = check_table(made_report(), kBroken);
  for (const char* part : {"all", "nothing assumed", "good", "not supported yet",
                           "0.55 is above the limit 0.1", "s/new"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(CheckTable, ShowsTagsWhenAskedFor) {
  EXPECT_EQ(check_table(made_report()).text().find("tag bf16"), std::string::npos);
  EXPECT_NE(check_table(made_report(), {}, {.tags = true}).text().find("tag bf16"),
            std::string::npos);
}

TEST(CheckTable, IsTheSummaryAloneWhenAskedFor) {
  const std::string text = check_table(made_report(), kBroken, {.summary_only = true});
  EXPECT_EQ(text.find("Largest errors"), std::string::npos);
  EXPECT_EQ(text.find("not supported yet"), std::string::npos);
  EXPECT_NE(text.find("above the limit"), std::string::npos) << "limits are never left out";
}

TEST(CheckTable, ListsTheLargestErrorsOfEachSuite) {
  CheckReport report;
  // Errors 1 %, 2 %, ..., 12 % in suite "s" and 1 % in suite "t".
  for (int i = 1; i <= 12; ++i) {
    report.cases.push_back(made_case("case-" + std::to_string(i) + ".", 1 + 0.01 * i, 1));
  }
  report.cases.push_back(made_case("other.", 1.01, 1));
  report.cases.back().suite = "t";
  report.summary = summarise(report.cases);
  const auto lists = [&](const CheckView& view, const char* id) {
    return check_markdown(report, {}, view).text().find(id) != std::string::npos;
  };
  EXPECT_TRUE(lists({}, "case-3."));  // the tenth of all
  EXPECT_FALSE(lists({}, "case-2."));
  EXPECT_FALSE(lists({}, "other."));
  EXPECT_TRUE(lists({.worst = 2}, "case-11."));
  EXPECT_FALSE(lists({.worst = 2}, "case-10."));
  EXPECT_TRUE(lists({.worst = 2}, "other."));
}

TEST(CheckTable, CountsACaseForEachReasonOfItsFailure) {
  CheckReport report;
  report.cases = {failed_case("a", "fp8 is not supported yet; cp = 2 is not supported yet"),
                  failed_case("b", "fp8 is not supported yet")};
  report.summary = summarise(report.cases);
  const std::string text = check_markdown(report);
  EXPECT_NE(text.find("| 2 | a | fp8 is not supported yet |"), std::string::npos) << text;
  EXPECT_NE(text.find("| 1 | a | cp = 2 is not supported yet |"), std::string::npos) << text;
}

TEST(CheckPage, JudgesOnlyByLimitsThatWereGiven) {
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  const std::string plain = check_html(made_report(), {});
  EXPECT_TRUE(has(plain, "\"verdict plain\"") && has(plain, "No limit was given")) << plain;
  GateOutcome kept;
  kept.closed = true;
  const std::string good = check_html(made_report(), kept);
  EXPECT_TRUE(has(good, "\"verdict good\"") && has(good, "No limit is broken")) << good;
  EXPECT_TRUE(has(check_html(made_report(), kBroken), "\"verdict bad\""));
}

TEST(CheckCsv, HasALinePerCase) {
  const std::string text = check_csv(made_report());
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
}

}  // namespace
}  // namespace stepcast
