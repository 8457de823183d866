// SPDX-License-Identifier: Apache-2.0
#include "validate/suite.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "core/text/escape.h"
#include "places.h"

namespace stepcast {
namespace {

std::string suite_with(const std::string& one_case) {
  return R"({"stepcast_suite": 1, "name": "made", "cases": [)" + one_case + "]}";
}

std::string case_with(const std::string& id, const std::string& more) {
  return R"({"id": ")" + id + R"(", "source": "a table", "measured": {"step_time_s": 2},)" +
         R"("scenario": {"stepcast": 1})" + more + "}";
}

bool names(const Errors& errors, const std::string& path) {
  return std::any_of(errors.begin(), errors.end(),
                     [&](const Error& error) { return error.path == path; });
}

Result<Suite> suite_of(const std::string& text) {
  const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string file = ::testing::TempDir() + "/" + test + ".json";
  std::ofstream(file) << text;
  return load_suite(file);
}

TEST(Suite, KeepsIdTagsAssumptionsAndMeasuredFigures) {
  const auto suite = suite_of(
      suite_with(R"({"id": "a", "source": "s", "tags": ["x", "y"], "assumed": ["layout.zero"],
                     "notes": "n", "measured": {"mfu": 0.5, "peak_memory_bytes": 1e9},
                     "scenario": {"stepcast": 1, "model": "m"}})"));
  ASSERT_TRUE(suite) << to_string(suite.error());
  ASSERT_EQ(suite->cases.size(), 1u);
  const SuiteCase& one = suite->cases.front();
  EXPECT_EQ(one.id, "a");
  EXPECT_EQ(one.tags, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(one.assumed, std::vector<std::string>{"layout.zero"});
  EXPECT_EQ(one.measured.mfu, 0.5);
  EXPECT_EQ(one.measured.peak_memory_bytes, 1e9);
  EXPECT_FALSE(one.measured.step_time_s);
  EXPECT_EQ(json_text(one.scenario), R"({"model":"m","stepcast":1})");
}

TEST(Suite, ReadsEveryConvention) {
  const auto suite =
      suite_of(suite_with(case_with("a", R"(, "convention": {"attention": "causal", "logits": false,
          "flops": "hardware", "peak": "989 TFLOP/s", "memory": "device", "bubble": "steady"})")));
  ASSERT_TRUE(suite) << to_string(suite.error());
  const Convention& convention = suite->cases.front().convention;
  EXPECT_TRUE(convention.causal_attention);
  EXPECT_FALSE(convention.logits);
  EXPECT_TRUE(convention.hardware_flops);
  ASSERT_TRUE(convention.peak.rate);
  EXPECT_DOUBLE_EQ(convention.peak.rate->value(), 989e12);
  EXPECT_EQ(convention.memory, Convention::Memory::kDevice);
  EXPECT_TRUE(convention.steady_bubble);
}

TEST(Suite, TakesTheDefaultsOfTheConventionWhenItIsAbsent) {
  const auto suite = suite_of(suite_with(case_with("a", "")));
  ASSERT_TRUE(suite) << to_string(suite.error());
  const Convention& convention = suite->cases.front().convention;
  EXPECT_FALSE(convention.causal_attention);
  EXPECT_TRUE(convention.logits);
  EXPECT_FALSE(convention.hardware_flops);
  EXPECT_FALSE(convention.peak.rate);
  EXPECT_EQ(convention.memory, Convention::Memory::kAllocated);
}

TEST(Suite, GroupsByModelClusterAndTrainingWithoutLabels) {
  const auto scenario = [](const char* id, const char* name, int batch, int tp) {
    return std::string(R"({"id": ")") + id +
           R"(", "source": "s", "measured": {"step_time_s": 1}, "scenario": {"model": {"name": ")" +
           name + R"(", "layers": 2}, "cluster": "c", "training": {"global_batch": )" +
           std::to_string(batch) + R"(}, "layout": {"tp": )" + std::to_string(tp) + "}}}";
  };
  const auto suite =
      suite_of(suite_with(scenario("a", "one", 8, 1) + "," + scenario("b", "two", 8, 2) + "," +
                          scenario("c", "one", 16, 1)));
  ASSERT_TRUE(suite) << to_string(suite.error());
  EXPECT_EQ(suite->cases[0].group, suite->cases[1].group);
  EXPECT_NE(suite->cases[0].group, suite->cases[2].group);
}

TEST(Suite, RefusesAnotherFormatNamingTheAcceptedOne) {
  const auto suite = suite_of(R"({"stepcast_suite": 2, "cases": 7})");
  ASSERT_FALSE(suite);
  ASSERT_EQ(suite.error().size(), 1u);
  EXPECT_EQ(suite.error().front().code, ErrorCode::kFormat);
  EXPECT_NE(suite.error().front().hint.find("1"), std::string::npos);
}

TEST(Suite, ListsAllErrorsWithTheirPaths) {
  const auto suite =
      suite_of(suite_with(R"({"id": 3, "source": "s", "measured": {"step_time_s": -1, "mfuu": 0.3},
                     "scenario": [], "convention": {"memory": "resident", "peak": "fast"}})"));
  ASSERT_FALSE(suite);
  for (const char* path :
       {"cases[0].id", "cases[0].measured.step_time_s", "cases[0].measured.mfuu",
        "cases[0].scenario", "cases[0].convention.memory", "cases[0].convention.peak"}) {
    EXPECT_TRUE(names(suite.error(), path)) << path << "\n" << to_string(suite.error());
  }
}

TEST(Suite, RefusesACaseWithoutMeasurementAndAnIdThatStandsTwice) {
  const auto suite =
      suite_of(suite_with(case_with("a", "") + "," + case_with("a", "") + "," +
                          R"({"id": "b", "source": "s", "measured": {}, "scenario": {}},)" +
                          R"({"id": "c", "source": "s", "measured": {"steps": 9, "out_of_memory":
                              false}, "scenario": {}})"));
  ASSERT_FALSE(suite);
  EXPECT_TRUE(names(suite.error(), "cases[1]"));
  EXPECT_TRUE(names(suite.error(), "cases[2].measured"));
  EXPECT_TRUE(names(suite.error(), "cases[3].measured"));
}

TEST(Suite, LoadsEveryShippedOne) {
  for (const char* name : {"megatron-a100", "vtrain-a100-multi", "vtrain-a100-single",
                           "llm-foundry", "zero-bubble-a100", "simumax-b200", "torchtitan",
                           "bloom-a100", "megatron-core-h100", "nemo-bridge", "automodel"}) {
    const auto suite = load_suite(source_folder() + "/suites/" + name + ".json");
    ASSERT_TRUE(suite) << name << "\n" << to_string(suite.error());
    EXPECT_EQ(suite->name, name);
    EXPECT_GT(suite->cases.size(), 7u);
  }
}

TEST(Suite, NamesAFileThatCannotBeRead) {
  const auto suite = load_suite("no/such/suite.json");
  ASSERT_FALSE(suite);
  EXPECT_EQ(suite.error().front().file, "no/such/suite.json");
}

}  // namespace
}  // namespace stepcast
