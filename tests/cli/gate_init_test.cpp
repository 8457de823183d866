// SPDX-License-Identifier: Apache-2.0
// From a folder of logs to a gate that passes, in one command at the root of a repository.
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <filesystem>

#include "core/each.h"
#include "logs/samples.h"
#include "places.h"
#include "program.h"

namespace stepcast::testing {
namespace {

namespace fs = std::filesystem;

// A repository with two logs, in which the test runs.
class GateInit : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = fs::current_path();
    fs::current_path(folder_ / "");
    fs::create_directory("logs");
    fs::create_directory("ci");
    write_file("logs/tp2.log",
               samples::kTorchtitanStart + samples::steps(samples::kTorchtitan2025, 1, 16));
    write_file("logs/tp2-later.log",
               samples::kTorchtitanStart + samples::steps(samples::kTorchtitan2026, 1, 16));
  }
  void TearDown() override { fs::current_path(before_); }

  Outcome init(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"gate", "init", "ci/runs.json"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  Outcome init_of_logs(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"--logs",   "logs",    "--cluster",
                                      "dgx-h100", "--model", "llama-3.1-8b"};
    words.insert(words.end(), more.begin(), more.end());
    return init(words);
  }

  Folder folder_;
  fs::path before_;
};

constexpr const char* kMadeWorkflow = ".github/workflows/stepcast-gate.yml";

TEST_F(GateInit, MakesSuiteBaselineAndWorkflowOfAFolderOfLogs) {
  const auto made = init_of_logs({"--repository", "https://git.example/stepcast.git"});
  ASSERT_EQ(made.code, 0) << made.error;
  EXPECT_TRUE(has(made.out, "Errors of step time")) << made.out;
  EXPECT_FALSE(has(made.error, "STEPCAST_REPOSITORY")) << made.error;
  const YAML::Node env = YAML::LoadFile(kMadeWorkflow)["env"];
  EXPECT_EQ(env["SUITE"].as<std::string>(), "ci/runs.json");
  EXPECT_EQ(env["BASELINE"].as<std::string>(), "ci/baseline.json");
  EXPECT_EQ(env["STEPCAST_REPOSITORY"].as<std::string>(), "https://git.example/stepcast.git");
  EXPECT_EQ(env["STEPCAST_REVISION"].as<std::string>(), "main");
  // The workflow's own check is green, and closes when a forecast drifts.
  const std::vector<std::string> check = {"check", env["SUITE"].as<std::string>(), "--baseline",
                                          env["BASELINE"].as<std::string>()};
  EXPECT_EQ(run(check).code, 0);
  auto drifted = check;
  drifted.insert(drifted.end(), {"--set", "training.precision=fp32"});
  EXPECT_EQ(run(drifted).code, 4);
}

// But for the values at its top the workflow is the example, which has tests of its own.
TEST_F(GateInit, TheWorkflowIsTheExample) {
  ASSERT_EQ(init_of_logs().code, 0);
  YAML::Node made = YAML::LoadFile(kMadeWorkflow);
  YAML::Node example =
      YAML::LoadFile(source_folder() + "/examples/github-actions/stepcast-gate.yml");
  made.remove("env");
  example.remove("env");
  EXPECT_EQ(YAML::Dump(made), YAML::Dump(example));
}

TEST_F(GateInit, TakesASuiteThatIsThere) {
  ASSERT_EQ(init_of_logs().code, 0);
  const std::string suite = read_file("ci/runs.json"), baseline = read_file("ci/baseline.json");
  expect_refused(init({}));  // both files are there
  const auto again = init({"--update"});
  ASSERT_EQ(again.code, 0) << again.error;
  EXPECT_EQ(read_file("ci/runs.json"), suite);
  EXPECT_EQ(read_file("ci/baseline.json"), baseline);
  EXPECT_TRUE(has(again.error, "STEPCAST_REPOSITORY")) << again.error;
}

// A name that YAML would read as something else is quoted.
TEST_F(GateInit, PathsReachTheWorkflowAsTheyAre) {
  ASSERT_EQ(init_of_logs({"--baseline", "ci/a # b: c.json", "--workflow", "gate.yml"}).code, 0);
  const YAML::Node env = YAML::LoadFile("gate.yml")["env"];
  EXPECT_EQ(env["BASELINE"].as<std::string>(), "ci/a # b: c.json");
  EXPECT_TRUE(fs::exists("ci/a # b: c.json"));
}

TEST_F(GateInit, WhatIsWrongWritesNothing) {
  write_file("ci/empty.json", "{\"stepcast_suite\": 1, \"cases\": []}");
  write_file("logs/short.log", samples::steps(samples::kMaxText, 1, 3));
  const std::vector<std::vector<std::string>> wrong = {
      {"gate", "init", "ci/none.json"},
      {"gate", "init", "ci/empty.json"},
      {"gate", "init", "../runs.json"},
      {"gate", "init", folder_ / "ci/empty.json"},
      {"gate", "init", "ci/runs.json", "--baseline", "/tmp/baseline.json"},
      {"gate", "init", "ci/runs.json", "--logs", "logs", "--cluster", "dgx-h100", "--model",
       "gpt2"},
      {"gate", "init", "ci/runs.json", "--logs", "logs/tp2.log"}};
  for (const auto& words : each_of(wrong)) {
    expect_refused(run(words));
    EXPECT_FALSE(fs::exists(".github"));
    EXPECT_FALSE(fs::exists("ci/runs.json"));
    EXPECT_FALSE(fs::exists("ci/baseline.json"));
  }
}

}  // namespace
}  // namespace stepcast::testing
