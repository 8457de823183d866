// SPDX-License-Identifier: Apache-2.0
// `calibrate --backend cuda` around the program that measures, which a fake stands in for: the real
// one needs a GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "environment.h"
#include "places.h"
#include "program.h"

namespace stepcast {
namespace {

using testing::Environment;
using testing::Folder;
using testing::has;
using testing::Outcome;
using testing::run;

const std::vector<std::string> kScenario = {
    "--model", "llama-3.2-1b", "--cluster",      "dgx-h200", "--framework", "native",
    "--seq",   "4096",         "--global-batch", "8",        "--dp",        "8"};

std::vector<std::string> words(const std::vector<std::string>& first,
                               const std::vector<std::string>& last) {
  std::vector<std::string> out = first;
  out.insert(out.end(), kScenario.begin(), kScenario.end());
  out.insert(out.end(), last.begin(), last.end());
  return out;
}

Outcome calibrated(const std::string& profile) {
  const Environment gpu("STEPCAST_GPU_PROGRAM", program_folder() + "/tests/cli_fake_gpu");
  return run(words({"calibrate", "--backend", "cuda"}, {"-o", profile}));
}

nlohmann::json predicted(const std::string& profile) {
  const Outcome outcome = run(words({"predict"}, {"--profile", profile, "--format", "json"}));
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  return outcome.json();
}

// All kernels reach the same fraction of the peak, whatever their shape, and so do those of the
// forecast.
TEST(CalibrateGpu, AForecastTakesTheMeasuredTimes) {
  const Folder folder;
  const std::string slow = folder / "slow.json", fast = folder / "fast.json";
  const Outcome made = calibrated(slow);
  ASSERT_EQ(made.code, 0) << made.error;
  EXPECT_TRUE(has(made.error, "wrote " + slow)) << made.error;
  {
    const Environment speed("STEPCAST_FAKE_SPEED", "1.5");
    ASSERT_EQ(calibrated(fast).code, 0);
  }
  EXPECT_EQ(folder.files(), 2u);  // no journal is left
  const auto of_slow = predicted(slow), of_fast = predicted(fast);
  const auto compute = [](const nlohmann::json& forecast) {
    return forecast["time_s"]["compute"].get<double>();
  };
  EXPECT_NEAR(compute(of_slow) / compute(of_fast), 1.5, 0.015);
  const auto written = nlohmann::json::parse(testing::read_file(slow));
  EXPECT_EQ(written["machine"]["driver"], "0.1");
  EXPECT_EQ(written["host"]["frameworks"], nlohmann::json({"native"}));
}

std::vector<std::string> curves_of(const nlohmann::json& profile, const std::string& operation) {
  std::vector<std::string> out;
  for (const auto& curve : profile["curves"]) {
    if (curve["operation"] == operation) out.push_back(curve.value("kernel", operation));
  }
  return out;
}

// Products of experts have a form of their own, and attention a curve for each kernel.
TEST(CalibrateGpu, ExpertsAndBothKernelsOfAttentionAreInTheProfile) {
  const Folder folder;
  const std::string profile = folder / "experts.json";
  const Environment gpu("STEPCAST_GPU_PROGRAM", program_folder() + "/tests/cli_fake_gpu");
  const Outcome made = run({"calibrate",
                            "--backend",
                            "cuda",
                            "--cluster",
                            "dgx-h200",
                            "--model",
                            "mixtral-8x7b",
                            "--framework",
                            "native",
                            "--global-batch",
                            "8",
                            "--seq",
                            "4096",
                            "--dp",
                            "8",
                            "--ep",
                            "8",
                            "--zero",
                            "1",
                            "-o",
                            profile});
  ASSERT_EQ(made.code, 0) << made.error;
  const std::string told = "cudnn for 2; in the median in 0.25 of the other's time";
  EXPECT_TRUE(has(made.error, told)) << made.error;
  const auto written = nlohmann::json::parse(testing::read_file(profile));
  EXPECT_EQ(written["machine"]["attention_compared"], "of 2 shapes faster: " + told);
  EXPECT_EQ(curves_of(written, "grouped_gemm"), std::vector<std::string>{"grouped_gemm"});
  const auto kernels = curves_of(written, "attention");
  for (const char* kernel : {"stepcast", "stepcast-own", "cudnn"}) {
    EXPECT_EQ(std::count(kernels.begin(), kernels.end(), kernel), 1) << kernel;
  }
}

TEST(CalibrateGpu, AKernelThatBreaksTheGpuEndsItsProcessAndAnotherGoesOn) {
  const Folder folder;
  const std::string profile = folder / "two-broke.json";
  const Environment fate("STEPCAST_FAKE", "break");
  const Outcome made = calibrated(profile);
  EXPECT_EQ(made.code, 0) << made.error;
  // The first two processes end, each with a word; the third measures.
  const std::string words = "has broken the GPU for this process; another process goes on";
  const std::size_t first = made.error.find(words);
  ASSERT_NE(first, std::string::npos) << made.error;
  const std::size_t second = made.error.find(words, first + 1);
  ASSERT_NE(second, std::string::npos) << made.error;
  EXPECT_EQ(made.error.find(words, second + 1), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(profile));
}

TEST(CalibrateGpu, AProcessThatEndsBeforeItTriesAnythingIsNotFollowedByAnother) {
  const Folder folder;
  const Environment fate("STEPCAST_FAKE", "no driver");
  const Outcome made = calibrated(folder / "none.json");
  EXPECT_NE(made.code, 0);
  EXPECT_FALSE(has(made.error, "another process")) << made.error;
}

TEST(CalibrateGpu, AJournalIsKeptForMoreScenariosWhenAsked) {
  const Folder folder;
  const Environment gpu("STEPCAST_GPU_PROGRAM", program_folder() + "/tests/cli_fake_gpu");
  const Environment fate("STEPCAST_FAKE", "break");
  const std::string profile = folder / "kept.json";
  const Outcome made =
      run(words({"calibrate", "--backend", "cuda"}, {"--keep-journal", "-o", profile}));
  ASSERT_EQ(made.code, 0) << made.error;
  EXPECT_TRUE(std::filesystem::exists(profile + ".journal/gpu/rank-0.jsonl"));
  ASSERT_EQ(calibrated(profile).code, 0);
  EXPECT_FALSE(std::filesystem::exists(profile + ".journal"));
}

std::vector<nlohmann::json> collectives_in(const std::string& profile) {
  std::vector<nlohmann::json> out;
  const auto written = nlohmann::json::parse(testing::read_file(profile));
  for (const auto& curve : written["curves"]) {
    if (curve["operation"] == "collective") out.push_back(curve);
  }
  return out;
}

TEST(CalibrateGpu, SeveralRanksMeasureCollectives) {
  const Folder folder;
  const std::string profile = folder / "two.json";
  const Environment gpu("STEPCAST_GPU_PROGRAM", program_folder() + "/tests/cli_fake_gpu");
  const Outcome made =
      run(words({"calibrate", "--backend", "cuda"}, {"--ranks", "2", "-o", profile}));
  ASSERT_EQ(made.code, 0) << made.error;
  // 2^24 bytes in 20 us + 16.777 ms; among two the bus carries as much.
  EXPECT_TRUE(has(made.error,
                  "all_reduce of 2 GPUs in 1 NVLink domains, 7 sizes, algbw 0.9988 "
                  "GB/s, busbw 0.9988 GB/s at the largest"))
      << made.error;
  const auto curves = collectives_in(profile);
  ASSERT_EQ(curves.size(), 1U);
  EXPECT_EQ(curves[0]["transport"], "nccl");
  EXPECT_EQ(curves[0]["ranks"], 2);
  EXPECT_EQ(curves[0]["samples"].size(), 7U);
  EXPECT_EQ(curves[0]["samples"][0], nlohmann::json({4096, 2.4096e-5}));
  EXPECT_EQ(folder.files(), 1U);
}

double step_time(const nlohmann::json& profile, const Folder& folder) {
  const std::string file = folder / "changed.json";
  testing::write_file(file, profile.dump());
  const Outcome outcome = run(words({"predict"}, {"--profile", file, "--format", "json", "--set",
                                                  "layout.overlap.grad_reduce=true"}));
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  return outcome.json()["step_time_s"].get<double>();
}

TEST(CalibrateGpu, KernelsLoseToCollectivesWhatWasMeasured) {
  const Folder folder;
  const std::string profile = folder / "two.json";
  const Environment gpu("STEPCAST_GPU_PROGRAM", program_folder() + "/tests/cli_fake_gpu");
  ASSERT_EQ(run(words({"calibrate", "--backend", "cuda"}, {"--ranks", "2", "-o", profile})).code,
            0);
  auto written = nlohmann::json::parse(testing::read_file(profile));
  EXPECT_EQ(written["machine"]["copy_to_host"], "55 GB/s");
  EXPECT_EQ(written["machine"]["beside_copy_to_host"],
            "a product takes 1.010 of its time, it 1.020");
  // A fifth of the 132 SMs, over NCCL's channels among two.
  const double measured = written["overlap"]["sms_per_channel"];
  const double channels = 0.2 * 132 / measured;
  EXPECT_NEAR(channels, std::round(channels), 1e-3 * channels);
  // The backward passes run beside the reduction of gradients.
  const double as_measured = step_time(written, folder);
  written["overlap"]["sms_per_channel"] = 0;
  const double free = step_time(written, folder);
  written["overlap"]["sms_per_channel"] = 2 * measured;
  const double twice = step_time(written, folder);
  EXPECT_GT(as_measured, free * 1.0001);
  EXPECT_GT(twice, as_measured * 1.0001);
}

TEST(CalibrateGpu, WhatIsForSeveralGpusAloneIsRefusedElsewhere) {
  const Folder folder;
  const Outcome processors = run({"calibrate", "--cluster", "local", "--model", "gpt2", "--ranks",
                                  "2", "-o", folder / "mine.json"});
  EXPECT_EQ(processors.code, 2);
  EXPECT_TRUE(has(processors.error, "--ranks: is for GPUs alone")) << processors.error;
  const Outcome alone = run(words({"calibrate", "--backend", "cuda"},
                                  {"--registered-buffers", "-o", folder / "mine.json"}));
  EXPECT_EQ(alone.code, 2);
  EXPECT_TRUE(has(alone.error, "give --ranks N")) << alone.error;
}

TEST(CalibrateGpu, OtherFrameworksKeepTheirAttention) {
  const Folder folder;
  const std::string profile = folder / "mine.json";
  ASSERT_EQ(calibrated(profile).code, 0);
  std::set<std::string> own, shared;  // kernels, by whether their curve names frameworks
  const auto written = nlohmann::json::parse(testing::read_file(profile));
  for (const auto& curve : written["curves"]) {
    if (curve["operation"] != "attention") continue;
    (curve.contains("frameworks") ? own : shared).insert(curve["kernel"].get<std::string>());
  }
  EXPECT_EQ(own, std::set<std::string>{"stepcast"});
  EXPECT_TRUE(shared.contains("fa2"));
}

TEST(CalibrateGpu, AnotherDeviceThanTheClustersIsRefused) {
  const Folder folder;
  const Environment device("STEPCAST_FAKE_DEVICE", "NVIDIA A100-SXM4-80GB");
  const Outcome outcome = calibrated(folder / "mine.json");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.error, "this machine's GPU is 'NVIDIA A100-SXM4-80GB'")) << outcome.error;
  EXPECT_EQ(folder.files(), 0u);
}

TEST(CalibrateGpu, WhereNothingCanMeasureItSaysWhy) {
  const Folder folder;
  const Environment gpu("STEPCAST_GPU_PROGRAM", folder / "none");
  const Outcome outcome =
      run(words({"calibrate", "--backend", "cuda"}, {"-o", folder / "mine.json"}));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.error, "this build has no CUDA")) << outcome.error;
  EXPECT_EQ(folder.files(), 0u);
}

TEST(CalibrateGpu, ProcessorsAreNoGpus) {
  const Folder folder;
  const Outcome outcome = run({"calibrate", "--backend", "cuda", "--cluster", "local", "--model",
                               "gpt2", "-o", folder / "mine.json"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(folder.files(), 0u);
}

}  // namespace
}  // namespace stepcast
