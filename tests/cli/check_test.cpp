// SPDX-License-Identifier: Apache-2.0
#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>

#include "cli/program.h"
#include "places.h"

namespace stepcast::testing {
namespace {

using nlohmann::json;

// One case that is predicted, one that is not modelled; `measured` seconds for the first.
std::string suite_text(double measured) {
  const auto scenario = [](const char* schedule, int zero) {
    return json{{"stepcast", 1},
                {"model", "llama-3.1-8b"},
                {"cluster", {{"base", "dgx-h100"}, {"nodes", 1}}},
                {"training", {{"global_batch", 32}}},
                {"layout", {{"tp", 2}, {"pp", 2}, {"schedule", schedule}, {"zero", zero}}}};
  };
  return json{{"stepcast_suite", 1},
              {"name", "made"},
              {"cases",
               {{{"id", "plain"},
                 {"source", "made for this test"},
                 {"tags", {"dense"}},
                 {"measured", {{"step_time_s", measured}}},
                 {"scenario", scenario("1f1b", 1)}},
                {{"id", "later"},
                 {"source", "made for this test"},
                 {"measured", {{"step_time_s", measured}}},
                 {"scenario", scenario("dualpipe", 2)}}}}}
      .dump();
}

class CheckCommand : public ::testing::Test {
 protected:
  void SetUp() override { write_file(suite_, suite_text(2)); }
  Outcome check(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{"check", suite_};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  Folder folder_;
  std::string suite_ = folder_ / "made.json";
};

TEST_F(CheckCommand, ReportsEveryCaseAndTheSummary) {
  const Outcome result = check({"--format", "json"});
  ASSERT_EQ(result.code, 0) << result.error;
  const json out = result.json();
  ASSERT_EQ(out["cases"].size(), 2u);
  EXPECT_GT(out["cases"][0]["predicted"]["step_time_s"], 0);
  EXPECT_NE(out["cases"][1]["failed"].get<std::string>().find("not supported yet"),
            std::string::npos);
  EXPECT_EQ(out["summary"]["all"]["failed"], 0);
  EXPECT_EQ(out["summary"]["all"]["not_supported"], 1);
  EXPECT_EQ(out["summary"]["all"]["step_time"]["count"], 1);
}

TEST_F(CheckCommand, GivesTheSameBytesForAnyNumberOfThreads) {
  EXPECT_EQ(check({"--format", "json", "--threads", "1"}).out,
            check({"--format", "json", "--threads", "4"}).out);
}

TEST_F(CheckCommand, ExitsWithFourWhenALimitIsNotKept) {
  EXPECT_EQ(check({"--tolerance", "dense:step_time.max_abs_error=1000"}).code, 0);
  const Outcome broken = check({"--tolerance", "step_time.mean_abs_error=0.01", "--quiet"});
  EXPECT_EQ(broken.code, 4);
  EXPECT_NE(broken.out.find("above the limit"), std::string::npos);
  EXPECT_EQ(broken.error, "");
}

TEST_F(CheckCommand, WritesWellFormedJunit) {
  const Outcome result = check({"--format", "junit"});
  ASSERT_EQ(result.code, 0) << result.error;
  std::istringstream in(result.out);
  boost::property_tree::ptree xml;
  EXPECT_NO_THROW(boost::property_tree::read_xml(in, xml));
  EXPECT_EQ(xml.get_child("testsuites").count("testsuite"), 2u);
}

TEST_F(CheckCommand, ComparesWithABaselineAndUpdatesIt) {
  const std::string baseline = folder_ / "baseline.json";
  expect_refused(check({"--baseline", baseline}));  // it is not there yet
  const json first = check({"--format", "json"}).json();
  const double predicted = first["cases"][0]["predicted"]["step_time_s"];
  write_file(suite_, suite_text(predicted));  // an error of zero
  EXPECT_EQ(check({"--baseline", baseline, "--update"}).code, 0);
  const std::string text = read_file(baseline);
  EXPECT_TRUE(json::accept(text));
  EXPECT_EQ(check({"--baseline", baseline}).code, 0);
  write_file(suite_, suite_text(2 * predicted));  // an error of a half
  EXPECT_EQ(check({"--baseline", baseline}).code, 4);
  EXPECT_EQ(read_file(baseline), text);
  EXPECT_EQ(check({"--baseline", baseline, "--update"}).code, 0);
  EXPECT_EQ(check({"--baseline", baseline}).code, 0);
}

TEST_F(CheckCommand, DoesNotRecordWhatBreaksALimit) {
  const std::string baseline = folder_ / "baseline.json";
  const Outcome broken =
      check({"--baseline", baseline, "--update", "--tolerance", "step_time.mean_abs_error=0.01"});
  EXPECT_EQ(broken.code, 4);
  EXPECT_TRUE(has(broken.error, "baseline.json is left as it was")) << broken.error;
  EXPECT_FALSE(std::filesystem::exists(baseline));
}

TEST_F(CheckCommand, DoesNotDropRecordedCasesThatAFlagLeavesOut) {
  const std::string baseline = folder_ / "baseline.json";
  ASSERT_EQ(check({"--baseline", baseline, "--update"}).code, 0);
  const Outcome some = check({"--baseline", baseline, "--update", "--case", "plain"});
  expect_refused(some);
  EXPECT_TRUE(has(some.error, "would drop 1 recorded case")) << some.error;
  EXPECT_TRUE(has(some.error, "made/later")) << some.error;
  // A case that is gone from the suite may go from its baseline.
  json suite = json::parse(suite_text(2));
  suite["cases"].erase(1);
  write_file(suite_, suite.dump());
  EXPECT_EQ(check({"--baseline", baseline}).code, 4);
  EXPECT_EQ(check({"--baseline", baseline, "--update"}).code, 0);
  EXPECT_FALSE(has(read_file(baseline), "made/later"));
}

TEST_F(CheckCommand, WritesAnnotationsAndAMarkdownSummaryInOneRun) {
  const std::string baseline = folder_ / "baseline.json", summary = folder_ / "summary.md";
  ASSERT_EQ(check({"--baseline", baseline, "--update"}).code, 0);
  write_file(suite_, suite_text(1e3));  // much slower than it was
  const Outcome worse =
      check({"--baseline", baseline, "--format", "github", "--md", summary, "--quiet"});
  EXPECT_EQ(worse.code, 4);
  EXPECT_TRUE(has(worse.out, "::error title=made/plain::1000 s, was 2.000 s")) << worse.out;
  const std::string text = read_file(summary);
  EXPECT_TRUE(text.starts_with("**failed: ")) << text;
  EXPECT_TRUE(has(text, "### Broken limits and regressions")) << text;
  expect_refused(check({"--md", folder_ / "none/summary.md"}));
}

TEST_F(CheckCommand, NamesNewCasesOfABaseline) {
  const std::string baseline = folder_ / "baseline.json";
  ASSERT_EQ(check({"--baseline", baseline, "--update", "--case", "later"}).code, 0);
  const Outcome both = check({"--baseline", baseline, "--format", "github"});
  EXPECT_TRUE(has(both.out, "made/plain: is not in the baseline")) << both.out;
}

TEST_F(CheckCommand, TakesCasesByTagAndScenarioKeysByFlag) {
  EXPECT_EQ(check({"--tag", "dense", "--format", "json"}).json()["cases"].size(), 1u);
  EXPECT_EQ(check({"--without-tag", "dense", "--format", "json"}).json()["cases"].size(), 1u);
  EXPECT_EQ(check({"--case", "lat", "--format", "json"}).json()["cases"][0]["id"], "later");
  EXPECT_EQ(check({"--case", "lat", "--case", "plain", "--format", "json"}).json()["cases"].size(),
            2u);
  const json both = check({"--set", "layout.schedule=1f1b", "--format", "json"}).json();
  EXPECT_EQ(both["summary"]["all"]["failed"], 0);
}

// A collective is no step: its rows stand apart in every form, and "all" leaves its suites out.
TEST(CheckCollectives, ReportsTimesOfCollectivesBesideThoseOfSteps) {
  const Folder folder;
  const auto check = [](std::vector<std::string> more) {
    std::vector<std::string> words{"check", "collectives", "--case", "h200x8-all-reduce-ml"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  };
  const json out = check({"--format", "json"}).json();
  ASSERT_EQ(out["cases"].size(), 11u);  // 16 MiB to 16 GiB
  EXPECT_EQ(out["summary"]["all"]["collective_time"]["count"], 11);
  EXPECT_FALSE(out["summary"]["all"].contains("step_time"));
  EXPECT_EQ(out["summary"]["all"]["algorithms"], 1);
  const json& one = out["cases"][0];
  EXPECT_EQ(one["collective"]["named_algorithm"], "nvls");
  EXPECT_NEAR(one["measured"]["collective_time_s"].get<double>(), 133.52e-6, 1e-12);
  EXPECT_TRUE(has(check({}).out, "Errors of collectives"));
  EXPECT_FALSE(has(check({}).out, "Errors of step time"));
  EXPECT_TRUE(has(check({"--format", "csv"}).out, "collective_time_error"));
  EXPECT_TRUE(has(check({"--format", "junit"}).out, "predicted, 134 us measured"));
  EXPECT_TRUE(has(check({"--format", "github"}).out, "collective mean error"));
  const std::string page = folder / "page.html", baseline = folder / "baseline.json";
  EXPECT_EQ(check({"--html", page, "--baseline", baseline, "--update"}).code, 0);
  EXPECT_TRUE(has(read_file(page), "collectives are off by"));
  EXPECT_EQ(check({"--baseline", baseline}).code, 0);
  EXPECT_EQ(check({"--tolerance", "16MiB-and-more:collective_time.median_abs_error=0.08"}).code, 0);
  EXPECT_EQ(check({"--tolerance", "collective_time.max_abs_error=1e-6"}).code, 4);
  // Another version is another choice; a key that a collective has not is refused.
  EXPECT_EQ(check({"--set", "software.NCCL_ALGO=ring", "--format", "json"})
                .json()["summary"]["all"]["algorithms"],
            0);
  expect_refused(check({"--set", "layout.tp=8"}));
  expect_refused(run({"check", "all", "--case", "h200x8-all-reduce-ml"}));
}

// The forecast is not within a millionth of 2 s; the case that is not supported is not judged.
TEST_F(CheckCommand, KeepsTheLimitsThatASuiteSetsOnItsCases) {
  json suite = json::parse(suite_text(2));
  suite["tolerance"] = {{"step_time", 1000}};
  write_file(suite_, suite.dump());
  const Outcome kept = check();
  EXPECT_EQ(kept.code, 0) << kept.error;
  EXPECT_TRUE(has(kept.out, "passed: 2 cases")) << kept.out;
  suite["cases"][0]["tolerance"] = {{"step_time", 1e-6}};
  write_file(suite_, suite.dump());
  const Outcome broken = check({"--quiet"});
  EXPECT_EQ(broken.code, 4);
  EXPECT_TRUE(has(broken.out, "made/plain: step_time")) << broken.out;
  EXPECT_FALSE(has(broken.out, "made/later: ")) << broken.out;
  suite["cases"][0]["tolerance"] = {{"peak_memory", 0.1}};
  write_file(suite_, suite.dump());
  const Outcome unmeasured = check();
  expect_refused(unmeasured);
  EXPECT_TRUE(has(unmeasured.error, "limits peak_memory, which it has not measured"))
      << unmeasured.error;
}

TEST_F(CheckCommand, IsNoOpenGateForNothing) {
  expect_refused(check({"--case", "nosuch"}));
  expect_refused(check({"--tag", "nosuch"}));
  const Outcome kept = check({"--without-tag", "densse"});
  expect_refused(kept);
  EXPECT_TRUE(has(kept.error, "--without-tag: no case has the tag 'densse'")) << kept.error;
  EXPECT_TRUE(has(kept.error, "did you mean 'dense'?")) << kept.error;
  const Outcome unknown = check({"--set", "layot.tp=3"});
  expect_refused(unknown);
  EXPECT_TRUE(has(unknown.error, "layot")) << unknown.error;
}

TEST_F(CheckCommand, RefusesWhatItCannotRead) {
  expect_refused(run({"check", "no-such-suite"}));
  expect_refused(run({"check", folder_ / "absent.json"}));
  expect_refused(run({"check", suite_, suite_}));
  expect_refused(check({"--tolerance", "step_time.mean=0.1"}));
  expect_refused(check({"--tolerance", "nobody:step_time.bias=0.1"}));
  expect_refused(check({"--update"}));
  write_file(suite_, R"({"stepcast_suite": 7, "cases": []})");
  expect_refused(check());
}

// The page of the gate shows a regression: this is its suite.
TEST_F(CheckCommand, TheRegressionOfThePageClosesTheGate) {
  const std::string page = read_file(source_folder() + "/docs/gate.md");
  const std::string begin = "runs.json <<'END'\n";
  const std::size_t at = page.find(begin);
  ASSERT_NE(at, std::string::npos);
  const std::size_t first = at + begin.size();
  write_file(suite_, page.substr(first, page.find("\nEND\n", first) - first));
  const std::string baseline = folder_ / "baseline.json";
  ASSERT_EQ(check({"--baseline", baseline, "--update"}).code, 0);
  EXPECT_EQ(check({"--baseline", baseline}).code, 0);
  EXPECT_EQ(check({"--baseline", baseline, "--set", "profile=none"}).code, 4);
}

TEST_F(CheckCommand, KnowsTheShippedSuites) {
  const Outcome result = run({"check", "megatron-core-h100", "--format", "csv"});
  ASSERT_EQ(result.code, 0) << result.error;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 9);  // titles and 8 cases
}

}  // namespace
}  // namespace stepcast::testing
