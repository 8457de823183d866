// SPDX-License-Identifier: Apache-2.0
// `validate --backend cuda` around the program that runs on the GPU, which a fake stands in for:
// what it launches, what it makes of one rank alone, and what it refuses.
#include <gtest/gtest.h>

#include <algorithm>

#include "environment.h"
#include "places.h"
#include "program.h"

namespace stepcast {
namespace {

using testing::Environment;
using testing::expect_refused;
using testing::Folder;
using testing::has;
using testing::Outcome;
using testing::run;

using Words = std::vector<std::string>;

Words joined(Words first, const Words& last) {
  first.insert(first.end(), last.begin(), last.end());
  return first;
}

class ValidateGpu : public ::testing::Test {
 protected:
  Outcome validate(const Words& layout, const Words& more = {}) const {
    const Words words{"validate", "--backend", "cuda", "--cluster",      "dgx-h200", "--framework",
                      "native",   "--seq",     "1024", "--global-batch", "8"};
    Words all = joined(joined(words, layout), more);
    if (std::find(all.begin(), all.end(), "--calibrate") == all.end()) {
      all = joined(all, {"--calibrate", "never"});
    }
    return run(all);
  }
  Outcome of_one(const Words& more = {}) const {
    return validate({"--model", "llama-3.2-1b", "--gpus", "1"}, more);
  }
  Outcome of_sixty_four(const Words& more = {}) const {
    return validate(
        {"--model", "llama-3.2-1b", "--nodes", "8", "--tp", "8", "--pp", "4", "--dp", "2"}, more);
  }

  Environment gpu_{"STEPCAST_GPU_PROGRAM", program_folder() + "/tests/cli_fake_gpu"};
  Folder folder_;
};

TEST_F(ValidateGpu, SetsTheRunOfOneGpuBesideItsForecast) {
  const std::string kept = folder_ / "kept";
  const Outcome outcome =
      of_one({"--format", "json", "--keep", kept, "--numerics-steps", "50", "--steps", "4"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto out = outcome.json();
  EXPECT_NEAR(out["measured"]["step_time_s"].get<double>(), 0.5, 1e-9);
  EXPECT_GT(out["predicted"]["step_time_s"], 0);
  EXPECT_EQ(out["measured"]["device_used_bytes"], 3 << 20);
  // Tensors, context, and the workspace of cuBLASLt and of cuDNN: for attention backward two bytes
  // for each of 32 x 1024^2 scores, and four for each element of queries, since heads share keys.
  const double device = out["predicted"]["peak_device_bytes"], used = 3 << 20;
  EXPECT_NEAR(out["error"]["device_used_bytes"].get<double>(), (device - used) / used, 1e-9);
  const double tensors = out["predicted"]["peak_memory_bytes"];
  const double mib = 1 << 20, fixed = (582 + 32 + 64 + 8) * mib;
  EXPECT_GE(device, tensors + fixed);
  EXPECT_LE(device, tensors + fixed + 2 * mib);
  // In bf16 only the loss is compared, with a wider limit.
  EXPECT_EQ(out["numerics"]["loss_relative_error"], 5e-3);
  EXPECT_EQ(out["numerics"]["loss_limit"], 1e-2);
  EXPECT_FALSE(out["numerics"].contains("parameter_relative_error"));
  EXPECT_FALSE(out.contains("alone"));
  EXPECT_EQ(out["passed"], true);
  const auto job = nlohmann::json::parse(testing::read_file(kept + "/job.json"));
  EXPECT_EQ(job["task"], "run");
  EXPECT_EQ(job["backend"], "cuda");
  EXPECT_EQ(job["numerics_steps"], 50);
  EXPECT_EQ(job["check_numerics"], true);
  EXPECT_EQ(job["steps"], 5);
  EXPECT_FALSE(job.contains("rank"));
}

TEST_F(ValidateGpu, RunsOneRankOfALargerLayoutAloneAndSaysWhatItLeavesOut) {
  const std::string kept = folder_ / "kept";
  const Outcome outcome = of_sixty_four({"--rank", "19", "--format", "json", "--keep", kept});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto out = outcome.json();
  EXPECT_EQ(out["alone"]["rank"], 19);  // tp 3, dp 0, pp 1 where tp counts first, then dp
  EXPECT_EQ(out["alone"]["of_ranks"], 64);
  EXPECT_EQ(out["alone"]["tp"], 3);
  EXPECT_EQ(out["alone"]["stage"], 1);
  const auto& left_out = out["alone"]["left_out"];
  const auto calls = [&](const char* what) {
    const auto found = std::find_if(left_out.begin(), left_out.end(),
                                    [&](const auto& one) { return one["what"] == what; });
    return found == left_out.end() ? 0 : (*found)["calls_per_step"].template get<int>();
  };
  EXPECT_EQ(calls("messages between stages"), 4 * 4);  // micro-batches, both ways, in and out
  EXPECT_GT(calls("collectives among tp ranks"), 0);
  EXPECT_GT(calls("collectives among dp ranks"), 0);
  // There is nothing to say about all ranks, and nothing to compare with.
  EXPECT_FALSE(out.contains("numerics"));
  for (const char* side : {"predicted", "measured"}) {
    EXPECT_FALSE(out[side].contains("tokens_per_s")) << side;
    EXPECT_FALSE(out[side].contains("mfu")) << side;
  }
  EXPECT_EQ(out["predicted"]["rank_classes"].size(), 1u);
  EXPECT_EQ(out["predicted"]["time_s"]["exposed"]["tp"], 0);
  EXPECT_EQ(out["measured"]["ranks"].size(), 1u);
  for (const auto& operation : out["operations"]) {
    EXPECT_NE(operation["name"], "collective all_reduce");
  }
  EXPECT_EQ(out["passed"], true);
  const auto job = nlohmann::json::parse(testing::read_file(kept + "/job.json"));
  EXPECT_EQ(job["rank"], 19);
  EXPECT_EQ(job["check_numerics"], false);
  EXPECT_TRUE(std::filesystem::exists(kept + "/rank-19.json"));
}

TEST_F(ValidateGpu, ATableOfOneRankSaysSoFirst) {
  const Outcome outcome = of_sixty_four({"--rank", "0"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  for (const char* part : {"Rank 0 of 64 alone (stage 0, tp 0, dp 0)", "collectives among tp ranks",
                           "the loss means nothing", "numerics are not compared",
                           "memory of the GPU", "passed: step time"}) {
    EXPECT_TRUE(has(outcome.out, part)) << part << "\n" << outcome.out;
  }
  for (const char* part : {"tokens/s", "Numerics:", "collective all_reduce"}) {
    EXPECT_FALSE(has(outcome.out, part)) << part << "\n" << outcome.out;
  }
}

TEST_F(ValidateGpu, TheOnlyRankOfALayoutIsTheWholeOfIt) {
  const Outcome outcome = of_one({"--rank", "0", "--format", "json"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_FALSE(outcome.json().contains("alone"));
  EXPECT_TRUE(outcome.json().contains("numerics"));
  expect_refused(of_one({"--rank", "1"}));
}

TEST_F(ValidateGpu, TooFewGpusAreCountedAndOneRankProposed) {
  const Outcome outcome = of_sixty_four();
  expect_refused(outcome);
  EXPECT_TRUE(has(outcome.error, "the layout has 64 ranks, and this machine 1 GPU (--rank 0"))
      << outcome.error;
  const Outcome beyond = of_sixty_four({"--rank", "64"});
  expect_refused(beyond);
  EXPECT_TRUE(has(beyond.error, "--rank: the layout has no rank 64 (0 to 63)")) << beyond.error;
}

TEST_F(ValidateGpu, AWholeLayoutHasAProcessForEachGpu) {
  if (!testing::mpirun_is_here()) GTEST_SKIP() << "mpirun is not on PATH";
  const Environment gpus("STEPCAST_FAKE_GPUS", "2");
  const Outcome outcome =
      validate({"--model", "llama-3.2-1b", "--gpus", "2", "--tp", "2"}, {"--format", "json"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_EQ(outcome.json()["measured"]["ranks"].size(), 2u);
}

TEST_F(ValidateGpu, WithoutADriverOrAProgramItSaysWhy) {
  {
    const Environment fate("STEPCAST_FAKE", "no driver");
    const Outcome outcome = of_one();
    expect_refused(outcome);
    EXPECT_TRUE(has(outcome.error, "no NVIDIA driver is loaded")) << outcome.error;
    EXPECT_TRUE(has(outcome.error, "stepcast doctor")) << outcome.error;
  }
  const Environment none("STEPCAST_GPU_PROGRAM", folder_ / "none");
  const Outcome outcome = of_one();
  expect_refused(outcome);
  EXPECT_TRUE(has(outcome.error, "cannot be run: this build has no CUDA")) << outcome.error;
}

TEST_F(ValidateGpu, AnotherGpuThanTheClustersIsRefused) {
  const Environment device("STEPCAST_FAKE_DEVICE", "NVIDIA A100-SXM4-80GB");
  const Outcome outcome = of_one();
  expect_refused(outcome);
  EXPECT_TRUE(has(outcome.error, "this machine's GPU is 'NVIDIA A100-SXM4-80GB'")) << outcome.error;
}

TEST_F(ValidateGpu, EndsAsTheRunDoes) {
  {
    const Environment fate("STEPCAST_FAKE", "die");
    const Outcome outcome = of_one({"-o", folder_ / "out"});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(has(outcome.error, "SIGABRT")) << outcome.error;
  }
  {
    const Environment fate("STEPCAST_FAKE", "numerics");
    EXPECT_EQ(of_one({"-o", folder_ / "out"}).code, 5);
  }
  EXPECT_EQ(folder_.files(), 0u);
  const Environment fate("STEPCAST_FAKE", "inexact");
  const Outcome outcome = of_one();
  EXPECT_EQ(outcome.code, 5);
  EXPECT_TRUE(has(outcome.out, "numerics: loss: differs by 0.02")) << outcome.out;
  EXPECT_EQ(of_one({"--no-numerics"}).code, 0);
  EXPECT_EQ(of_one({"--no-numerics", "--tolerance", "device_memory=0"}).code, 5);
}

TEST_F(ValidateGpu, InFp32ParametersAreComparedToo) {
  const Outcome outcome = of_one({"--precision", "fp32", "--format", "json"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_EQ(outcome.json()["numerics"]["parameter_limit"], 1e-5);
}

TEST_F(ValidateGpu, RefusesTypesThatItsExecutorHasNot) {
  const Outcome half = of_one({"--precision", "fp16"});
  expect_refused(half);
  EXPECT_TRUE(has(half.error, "fp16 is not run by the CUDA backend")) << half.error;
  const Outcome wire =
      of_one({"--set", "training.grad_precision=fp32", "--set", "training.reduce_precision=bf16"});
  expect_refused(wire);
  EXPECT_TRUE(has(wire.error, "bf16 of gradients kept in fp32 is not run by")) << wire.error;
}

TEST_F(ValidateGpu, ALayoutThatDoesNotFitIsNotRun) {
  const Outcome outcome = validate({"--model", "llama-3.1-70b", "--gpus", "1"});
  EXPECT_EQ(outcome.code, 3) << outcome.error;
  // 16 bytes for each of 70.6e9 parameters are 1051 GiB; gaps of an allocator are not the
  // executor's.
  EXPECT_TRUE(has(outcome.out, "does not fit: 1074")) << outcome.out;
  EXPECT_FALSE(has(outcome.out, "measured")) << outcome.out;
}

TEST_F(ValidateGpu, AReferenceThatDoesNotFitIsNotBegun) {
  // 3.2e9 parameters take 48 GiB in both. The activations of 16384 tokens take some 45 GiB in bf16,
  // and twice as much in fp32.
  const Words large{"validate",
                    "--backend",
                    "cuda",
                    "--cluster",
                    "dgx-h200",
                    "--model",
                    "llama-3.2-3b",
                    "--framework",
                    "native",
                    "--seq",
                    "16384",
                    "--global-batch",
                    "1",
                    "--gpus",
                    "1",
                    "--micro-batch",
                    "1",
                    "--calibrate",
                    "never"};
  const Outcome outcome = run(large);
  EXPECT_EQ(outcome.code, 3) << outcome.error;
  EXPECT_TRUE(has(outcome.error, "the whole model in fp32 on one GPU, which needs 1"))
      << outcome.error;
  EXPECT_TRUE(has(outcome.error, "GiB of 140.40 GiB: give --no-numerics")) << outcome.error;
  EXPECT_EQ(run(joined(large, {"--no-numerics"})).code, 0);
}

TEST_F(ValidateGpu, CalibratesWhatTheProfileLacks) {
  const std::string profile = folder_ / "mine.json";
  const Words words{"--profile", profile, "--calibrate", "auto", "--format", "json"};
  const Outcome first = of_sixty_four(joined({"--rank", "8"}, words));
  ASSERT_EQ(first.code, 0) << first.error;
  EXPECT_TRUE(has(first.error, "mine.json does not exist: it is measured and written"))
      << first.error;
  EXPECT_EQ(folder_.files(), 1u);
  const auto written = std::filesystem::last_write_time(profile);
  const Outcome second = of_sixty_four(joined({"--rank", "8"}, words));
  ASSERT_EQ(second.code, 0) << second.error;
  EXPECT_EQ(std::filesystem::last_write_time(profile), written);
  EXPECT_FALSE(has(second.error, "lacks what this layout needs")) << second.error;
  EXPECT_FALSE(has(second.error, "does not exist")) << second.error;
  EXPECT_EQ(first.json()["predicted"]["step_time_s"], second.json()["predicted"]["step_time_s"]);
}

}  // namespace
}  // namespace stepcast
