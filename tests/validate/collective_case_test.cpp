// SPDX-License-Identifier: Apache-2.0
#include "validate/collective_case.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/json.h"
#include "core/text/written.h"
#include "scenario_from.h"
#include "validate/baseline.h"
#include "validate/check.h"
#include "validate/collective_forecast.h"
#include "validate/documents.h"

namespace stepcast {
namespace {

// `more` are keys of the collective after its kind, ranks and fabric.
std::string suite_with(const std::string& times, const std::string& more = "",
                       const std::string& cluster = R"({"base": "dgx-h100", "nodes": 1})") {
  return R"({"stepcast_suite": 1, "name": "made", "publisher": "p", "cases": [{"id": "a",
      "source": "a table", "collective": {"kind": "all_reduce", "ranks": 8, "fabric": "F")" +
         more + R"(}, "scenario": {"stepcast": 1, "cluster": )" + cluster +
         R"(}, "measured": {"times_us": )" + times + "}}]}";
}

Result<Suite> suite_of(const std::string& text) {
  auto document = JsonDocument::parse(text, "made.json");
  if (!document) return failure(document.error());
  return read_suite(**document);
}

CaseResult checked(const std::string& text, const CheckOptions& options = {}) {
  const auto suite = suite_of(text);
  EXPECT_TRUE(suite) << to_string(suite.error());
  const CheckReport report = check({*suite}, testing::source_folders(), options);
  EXPECT_TRUE(report.refused.empty()) << to_string(report.refused);
  return report.cases.front();
}

TEST(CollectiveCase, BecomesACaseForEachSizeThatWasMeasured) {
  const auto suite = suite_of(suite_with("[[1000, 10], [1048576, 45.5], [16777216, 125]]"));
  ASSERT_TRUE(suite) << to_string(suite.error());
  ASSERT_EQ(suite->cases.size(), 3u);
  EXPECT_EQ(suite->cases[0].id, "a/1000B");
  EXPECT_EQ(suite->cases[1].id, "a/1MiB");
  EXPECT_EQ(suite->cases[2].id, "a/16MiB");
  EXPECT_DOUBLE_EQ(*suite->cases[1].measured.collective_time_s, 45.5e-6);
  EXPECT_EQ(suite->cases[1].tags, (std::vector<std::string>{"below-16MiB", "held-out-table"}));
  EXPECT_EQ(suite->cases[2].tags, (std::vector<std::string>{"16MiB-and-more", "held-out-table"}));
  EXPECT_TRUE(suite->cases[2].group.empty());
}

TEST(CollectiveCase, HasTimesAndAStepHasNone) {
  const auto refused = [](std::string text, const char* path) {
    const auto suite = suite_of(text);
    if (suite) return false;
    return std::ranges::any_of(suite.error(), [&](const Error& e) { return e.path == path; });
  };
  EXPECT_TRUE(refused(suite_with("[]"), "cases[0]"));
  EXPECT_TRUE(refused(suite_with("[[2048, 3], [1024, 2]]"), "cases[0]"));
  EXPECT_TRUE(refused(suite_with("[[2048]]"), "cases[0].measured.times_us[0]"));
  EXPECT_TRUE(refused(suite_with("[[2048, 0]]"), "cases[0].measured.times_us[0]"));
  EXPECT_TRUE(refused(suite_with(R"([[2048, 3]], "step_time_s": 2)"), "cases[0]"));
  std::string step = suite_with("[[2048, 3]]");
  step.replace(step.find("\"times_us\": [[2048, 3]]"), 23, "\"step_time_s\": 2");
  EXPECT_TRUE(refused(step, "cases[0]"));
}

TEST(CollectiveCase, NamesTheAlgorithmOfASizeAsItsSourceDoes) {
  CollectiveCase one;
  one.algorithms = {{"ring", 1, 1024}, {"nvls", 2048}};
  one.bytes = 1024;
  EXPECT_EQ(one.algorithm(), "ring");
  one.bytes = 1500;
  EXPECT_EQ(one.algorithm(), "");
  one.bytes = 4096;
  EXPECT_EQ(one.algorithm(), "nvls");
}

// 8 H100 reduce 8 GiB in the switch, and in a ring where the environment forbids that: 8 x 20.6 x
// 2 of 48 GB/s a ring are at least a fifth slower.
TEST(CollectiveCase, FollowsVersionAndEnvironment) {
  const std::string times = "[[8589934592, 31450]]";
  const std::string named = R"(, "algorithms": [{"name": "nvls"}])";
  const CaseResult usual = checked(suite_with(times, named));
  std::string text = suite_with(times, named);
  text.replace(text.find("\"nodes\": 1}}"), 12,
               "\"nodes\": 1}, \"software\": {\"NCCL_NVLS_ENABLE\": 0}}");
  const CaseResult ring = checked(text);
  ASSERT_TRUE(usual.predicted && ring.predicted) << usual.failed << ring.failed;
  EXPECT_EQ(usual.collective->algorithm, "nvls");
  EXPECT_EQ(ring.collective->algorithm, "ring");
  EXPECT_GT(*ring.predicted->collective_time_s, 1.2 * *usual.predicted->collective_time_s);
  const auto row = summarise(std::vector<const CaseResult*>{&usual, &ring});
  EXPECT_DOUBLE_EQ(*row.algorithms, 0.5);
  EXPECT_EQ(row.collective_time.count, 2u);
  EXPECT_EQ(row.step_time.count, 0u);
}

// The curve gives back its own samples. Without the one that is asked it does not.
TEST(CollectiveCase, IsForecastWithoutItsOwnTime) {
  const std::string cluster = R"({"base": "aws-p5", "nodes": 1})";
  const std::string table = R"(, "table": "h100x8-all-reduce-p5")";
  const std::string times = "[[33554432, 196.1]]";
  const double itself = *checked(suite_with(times, "", cluster)).predicted->collective_time_s;
  const CaseResult apart = checked(suite_with(times, table, cluster));
  EXPECT_NE(*apart.predicted->collective_time_s, itself);
  EXPECT_NEAR(*apart.predicted->collective_time_s / itself, 1, 0.2);
  EXPECT_EQ(apart.collective->curve, "h100x8-all-reduce-p5");
}

// Whoever mistypes the table would see a time forecast by itself.
TEST(CollectiveCase, FailsWhereItsTableOrItsSizeIsNotThere) {
  const std::string cluster = R"({"base": "aws-p5", "nodes": 1})";
  for (const auto& [table, times] : std::vector<std::pair<const char*, const char*>>{
           {"h100x8-all-reduce-p6", "[[33554432, 196.1]]"},
           {"h100x8-all-reduce-p5", "[[33554431, 196.1]]"}}) {
    const std::string more = std::string(R"(, "table": ")") + table + "\"";
    const CaseResult one = checked(suite_with(times, more, cluster));
    EXPECT_NE(one.failed.find(table), std::string::npos) << one.failed;
    EXPECT_EQ(one.errors.collective_time, std::nullopt);
  }
}

TEST(CollectiveCase, IsForecastWithoutItsPublishersTables) {
  CheckOptions options;
  options.publisher_left_out = true;
  const CaseResult one =
      checked(suite_with("[[33554432, 196.1]]", R"(, "table": "h100x8-all-reduce-p5")",
                         R"({"base": "aws-p5", "nodes": 1})"),
              options);
  EXPECT_NE(one.collective->curve, "h100x8-all-reduce-p5");
}

TEST(CollectiveCase, FailsWhereTheClusterHasTooFewGpus) {
  const CaseResult one = checked(suite_with("[[1024, 3]]", R"(, "ranks_per_node": 4)"));
  EXPECT_NE(one.failed.find("8 ranks, 4 on a node, are not in 8 GPUs"), std::string::npos)
      << one.failed;
  EXPECT_EQ(one.errors.collective_time, std::nullopt);
}

TEST(CollectiveCase, IsHeldAgainstABaseline) {
  const auto suite = suite_of(suite_with("[[16777216, 125]]"));
  ASSERT_TRUE(suite) << to_string(suite.error());
  CheckReport report = check({*suite}, testing::source_folders());
  const auto baseline = read_baseline(baseline_text(report).text(), "b.json", {"made"});
  ASSERT_TRUE(baseline) << to_string(baseline.error());
  EXPECT_TRUE(compare_with_baseline(report, *baseline).regressions.empty());
  CaseResult& one = report.cases.front();
  *one.predicted->collective_time_s *= 4;
  one.compare();
  report.summary = summarise(report.cases);
  const auto worse = compare_with_baseline(report, *baseline).regressions;
  ASSERT_FALSE(worse.empty());
  EXPECT_EQ(worse.front().title, "made/a/16MiB");
}

TEST(CollectiveCase, ShippedOnesAreAllForecast) {
  const auto suite = load_suite(source_folder() + "/suites/collectives.json");
  ASSERT_TRUE(suite) << to_string(suite.error());
  CheckOptions options;
  options.threads = 2;
  const CheckReport report = check({*suite}, testing::source_folders(), options);
  std::int64_t most = 0;
  for (const CaseResult& one : report.cases) {
    ASSERT_TRUE(one.failed.empty()) << one.id << ": " << one.failed;
    most = std::max(most, one.collective->ranks);
  }
  EXPECT_EQ(most, 1440);
  EXPECT_GT(report.cases.size(), 2000u);
}

}  // namespace
}  // namespace stepcast
