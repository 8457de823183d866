// SPDX-License-Identifier: Apache-2.0
// The gate's questions on runs that changed: logs of four tools, each followed by one of a later
// run, from the log to the exit code.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <random>

#include "core/each.h"
#include "logs/samples.h"
#include "program.h"

namespace stepcast::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kSteps = 45;

// A run's step times, of which `noise` is the deviation.
std::vector<double> step_times(double mean_s, double noise, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> factor(1, noise);
  std::vector<double> out;
  for (int i = 0; i < kSteps; ++i) out.push_back(mean_s * factor(random));
  return out;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", value);
  return text;
}

struct Tool {
  const char* name;
  double step_s;  // near the forecast
  std::string (*log)(const std::vector<double>& times, int batch);
  std::vector<std::string> flags;
};

std::string megatron(const std::vector<double>& times, int batch) {
  std::string out;
  for (std::size_t i = 0; i < times.size(); ++i) {
    out += " iteration " + std::to_string(i + 1) +
           "/ 100 | elapsed time per iteration (ms): " + number(1e3 * times[i]) +
           " | global batch size: " + std::to_string(batch) + " | lm loss: 8.6E+00 |\n";
  }
  return out;
}

std::string torchtitan(const std::vector<double>& times, int batch) {
  std::string start = samples::kTorchtitanStart;
  start.replace(start.find("batch size 16"), 13, "batch size " + std::to_string(batch));
  std::string out = start;
  for (std::size_t i = 0; i < times.size(); ++i) {
    out +=
        "[rank0]:[titan] 2025-03-12 11:10:21,511 - root - INFO - step: " + std::to_string(i + 1) +
        "  loss:  6.2250  memory:  1.41GiB(1.79%)  tps: " + number(batch * 8192 / times[i] / 16) +
        "  tflops: 18.36  mfu: 1.86%\n";
  }
  return out;
}

std::string deepspeed(const std::vector<double>& times, int batch) {
  std::string out;
  for (std::size_t i = 0; i < times.size(); ++i) {
    out += "[2023-07-25 21:03:17,269] [INFO] [timer.py:215:stop] epoch=0/micro_step=" +
           std::to_string(i + 1) + "/global_step=" + std::to_string(i + 1) +
           ", RunningAvgSamplesPerSec=7.86, CurrSamplesPerSec=" + number(batch / times[i]) +
           ", MemAllocated=0.26GB, MaxMemAllocated=63.31GB\n";
  }
  return out;
}

std::string hugging_face(const std::vector<double>& times, int) {
  double at = 0;
  std::string out;
  for (std::size_t i = 0; i < times.size(); ++i) {
    at += times[i];
    const auto seconds = static_cast<int>(at);
    char text[96];
    std::snprintf(text, sizeof text, "  1%%|#         | %zu/7252 [%02d:%02d<29:02:42, %.2fs/it]\r",
                  i + 1, seconds / 60, seconds % 60, times[i]);
    out += text;
  }
  return out;
}

const std::vector<Tool>& tools() {
  static const std::vector<Tool> all = {
      {"megatron", 7.5, megatron, {"--gpus", "8", "--tp", "4", "--seq", "4096"}},
      {"torchtitan", 1.5, torchtitan, {}},
      {"deepspeed", 7.5, deepspeed, {"--gpus", "8", "--seq", "4096"}},
      {"hugging-face", 7.5, hugging_face, {"--gpus", "8", "--seq", "4096"}}};
  return all;
}

struct Change {
  const char* name;
  double factor;
  double noise;
  bool other_batch;
  int code;
  const char* says;  // of the verdict
};
constexpr Change kChanges[] = {{"same", 1, 0.002, false, 0, "as fast"},
                               {"3 % noise", 1, 0.03, false, 0, "as fast"},
                               {"5 % slower", 1.05, 0.002, false, 4, "slower"},
                               {"10 % slower", 1.10, 0.002, false, 4, "slower"},
                               {"6 % faster", 0.94, 0.002, false, 0, "faster"},
                               {"other batch", 2, 0.002, true, 4, "another run"}};

class GateRuns : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = fs::current_path();
    fs::current_path(folder_ / "");
    fs::create_directory("logs");
  }
  void TearDown() override { fs::current_path(before_); }

  // Words of a command that reads a log of the tool.
  static std::vector<std::string> with_flags(std::vector<std::string> words, const Tool& tool,
                                             int batch) {
    for (const char* word : {"--cluster", "dgx-h100", "--model", "llama-3.1-8b"}) {
      words.emplace_back(word);
    }
    words.insert(words.end(), tool.flags.begin(), tool.flags.end());
    if (std::string(tool.name) != "torchtitan") {
      words.insert(words.end(), {"--global-batch", std::to_string(batch)});
    }
    return words;
  }
  static void write_log(const Tool& tool, double factor, double noise, int batch, unsigned seed) {
    write_file("logs/8b.log", tool.log(step_times(factor * tool.step_s, noise, seed), batch));
  }

  Folder folder_;
  fs::path before_;
};

// A gate of one log; then the log of a later run, and the gate again.
TEST_F(GateRuns, EachPairOfLogsHasItsVerdict) {
  AtLeast pairs(24);
  for (const Tool& tool : each_of(tools())) {
    const int batch = std::string(tool.name) == "torchtitan" ? 16 : 128;
    for (const Change& change : kChanges) {
      SCOPED_TRACE(std::string(tool.name) + ", " + change.name);
      fs::remove_all("ci");
      write_log(tool, 1, 0.002, batch, 1);
      const auto made = run(with_flags(
          {"gate", "init", "ci/runs.json", "--logs", "logs/8b.log", "--update"}, tool, batch));
      ASSERT_EQ(made.code, 0) << made.error;
      const int later = change.other_batch ? 2 * batch : batch;
      write_log(tool, change.factor, change.noise, later, 2);
      const auto again =
          run(with_flags({"import", "logs/8b.log", "--suite", "ci/runs.json"}, tool, later));
      ASSERT_EQ(again.code, 0) << again.error;
      const auto checked =
          run({"check", "ci/runs.json", "--baseline", "ci/baseline.json", "--format", "json"});
      EXPECT_EQ(checked.code, change.code) << checked.out << checked.error;
      const json runs = checked.json()["runs"];
      ASSERT_EQ(runs.size(), 1u);
      EXPECT_EQ(runs[0]["verdict"], change.says) << runs;
      ++pairs;
      // Whatever it was, a reviewer can accept it.
      EXPECT_EQ(run({"check", "ci/runs.json", "--baseline", "ci/baseline.json", "--update"}).code,
                0);
      EXPECT_EQ(run({"check", "ci/runs.json", "--baseline", "ci/baseline.json"}).code, 0);
    }
  }
}

// Without a baseline the suite's own earlier run counts; the limits of the case stay.
TEST_F(GateRuns, ASuiteKnowsTheRunBefore) {
  const Tool& tool = tools().front();
  const auto flags = [&](std::vector<std::string> words) { return with_flags(words, tool, 128); };
  write_file("8b-tp4.log", megatron(std::vector<double>(45, 6.91), 128));
  write_file("run-0512.log", megatron(std::vector<double>(45, 7.58), 128));
  ASSERT_EQ(run(flags({"import", "8b-tp4.log", "--suite", "runs.json"})).code, 0);
  EXPECT_EQ(run({"check", "runs.json"}).code, 0);
  json stated = json::parse(read_file("runs.json"));
  stated["cases"][0]["tolerance"] = {{"step_time", 0.5}};
  write_file("runs.json", stated.dump());
  const std::vector<std::string> later = {"import",    "run-0512.log", "--suite",
                                          "runs.json", "--case",       "8b-tp4"};
  ASSERT_EQ(run(flags(later)).code, 0);
  ASSERT_EQ(run(flags(later)).code, 0);  // the same run again is no run more
  const json suite = json::parse(read_file("runs.json"));
  ASSERT_EQ(suite["cases"].size(), 1u);
  EXPECT_EQ(suite["cases"][0]["tolerance"], (json{{"step_time", 0.5}}));
  ASSERT_EQ(suite["cases"][0]["earlier"].size(), 1u);
  EXPECT_EQ(suite["cases"][0]["earlier"][0]["measured"]["step_time_s"], 6.91);
  const auto checked = run({"check", "runs.json"});
  EXPECT_EQ(checked.code, 4);
  EXPECT_TRUE(has(checked.error, "8b-tp4: 7.580 s, was 6.910 s: 9.7 % slower")) << checked.error;
  EXPECT_TRUE(has(checked.out, "runs against those before: 1 slower")) << checked.out;
  EXPECT_EQ(run({"check", "runs.json", "--slower", "0.1"}).code, 0);
  expect_refused(run(
      flags({"import", "8b-tp4.log", "run-0512.log", "--suite", "runs.json", "--case", "8b-tp4"})));
  expect_refused(run(flags({"import", "8b-tp4.log", "--case", "8b-tp4"})));
}

TEST_F(GateRuns, ADiagnosisSaysBoth) {
  const Tool& tool = tools().front();
  write_file("8b-tp4.log", megatron(std::vector<double>(45, 6.91), 128));
  write_file("run-0512.log", megatron(std::vector<double>(45, 7.58), 128));
  write_file("big.log", megatron(std::vector<double>(45, 14), 256));
  ASSERT_EQ(run(with_flags({"import", "8b-tp4.log", "-o", "s.json"}, tool, 128)).code, 0);
  ASSERT_EQ(run(with_flags({"import", "8b-tp4.log", "--suite", "runs.json"}, tool, 128)).code, 0);
  for (const char* before : {"8b-tp4.log", "runs.json"}) {
    const auto said = run({"diagnose", "s.json", "--log", "run-0512.log", "--before", before});
    ASSERT_EQ(said.code, 0) << said.error;
    EXPECT_TRUE(has(said.out, "its forecast is")) << said.out;
    EXPECT_TRUE(has(said.out, "against the last run: 7.580 s, was 6.910 s: 9.7 % slower"))
        << said.out;
  }
  const auto other = run({"diagnose", "s.json", "--log", "big.log", "--before", "8b-tp4.log"});
  EXPECT_TRUE(has(other.out, "not compared: global_batch is 256, was 128")) << other.out;
  expect_refused(run({"diagnose", "s.json", "--log", "big.log", "--before", "none.log"}));
}

// A flag for a folder is for the logs that print no batch.
TEST_F(GateRuns, ABatchThatALogPrintsHolds) {
  write_file("big.log", megatron(std::vector<double>(45, 14), 256));
  const auto made = run(with_flags({"import", "big.log"}, tools().front(), 128));
  ASSERT_EQ(made.code, 0) << made.error;
  EXPECT_EQ(made.json()["training"]["global_batch"], 256);
  EXPECT_TRUE(has(made.error, "is 128 by flag and 256 in the log, which holds")) << made.error;
}

TEST_F(GateRuns, OneBadLogLeavesTheOthersOfAFolder) {
  const Tool& tool = tools().front();
  write_file("logs/good.log", megatron(std::vector<double>(45, 7), 128));
  write_file("logs/short.log", megatron(std::vector<double>(3, 7), 128));
  const std::vector<std::string> init = {"gate", "init", "ci/runs.json", "--logs", "logs"};
  const auto made = run(with_flags(init, tool, 128));
  ASSERT_EQ(made.code, 0) << made.error;
  EXPECT_TRUE(has(made.error, "left out:")) << made.error;
  EXPECT_TRUE(has(made.error, "short.log")) << made.error;
  EXPECT_EQ(json::parse(read_file("ci/runs.json"))["cases"].size(), 1u);
}

}  // namespace
}  // namespace stepcast::testing
