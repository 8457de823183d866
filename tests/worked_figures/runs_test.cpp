// SPDX-License-Identifier: Apache-2.0
// docs/worked-examples.md, "Whole runs".
#include <gtest/gtest.h>

#include <cmath>

#include "core/quantity.h"
#include "model/import_model.h"
#include "predict/prediction.h"
#include "worked_figures/worked_scenarios.h"

namespace stepcast {
namespace {

using namespace stepcast::literals;
using testing::run_of;
using testing::RunCase;

// Shoeybi et al. 2019, section 5.1: 15.1 PFLOP/s on 512 GPUs against 39 TFLOP/s on one.
TEST(WorkedRuns, Scaling8300MillionTo512GpusKeeps76Percent) {
  const FlopsPerSecond alone = 39_TFLOPS, together = 15'100_TFLOPS;
  EXPECT_NEAR(together / (512 * alone), 0.76, 0.005);
}

// Narayanan et al. 2021, table 1: 1T on 3,072 A100, tp 8, pp 64, 3,072 sequences, full recompute,
// 502 PFLOP/s. 96 BsLh^2 (1 + s/6h + V/16Lh) / 502e15; for MFU 72 BsLh^2 (1 + s/6h + V/12Lh).
TEST(WorkedRuns, OneTrillionAt502PetaflopsIs52PercentHfuAnd39Mfu) {
  const Scenario scenario = run_of({.model = "megatron-1t",
                                    .recompute = "full",
                                    .gpus = 3072,
                                    .tp = 8,
                                    .pp = 64,
                                    .global_batch = 3072});
  const FlopsPerSecond rate = 502'000_TFLOPS;
  const auto peak = scenario.cluster.spec.accelerator.peak(DataType::kBf16);
  ASSERT_TRUE(peak);
  const FlopsPerSecond peaks = 3072 * *peak;
  const Seconds step = hardware_flops(scenario) / rate;
  EXPECT_NEAR(step.value(), 102.4, 0.05);
  EXPECT_NEAR(hardware_flops(scenario) / step / peaks, 0.524, 5e-4);
  EXPECT_NEAR(model_flops(scenario) / step / peaks, 0.393, 5e-4);
  const double h = 25600, s = 2048, layers = 128, vocab = 51200, sequences = 3072;
  const double form = sequences * s * layers * h * h;
  EXPECT_NEAR(hardware_flops(scenario).value(),
              96 * form * (1 + s / (6 * h) + vocab / (16 * layers * h)), 1e-9 * 96 * form);
  EXPECT_NEAR(model_flops(scenario).value(),
              72 * form * (1 + s / (6 * h) + vocab / (12 * layers * h)), 1e-9 * 72 * form);
}

// tp x pp GPUs hold one replica; dp of them a multiple.
TEST(WorkedRuns, AReplicaOf530BTakes280Gpus) {
  RunCase c{.model = "megatron-530b", .gpus = 280, .tp = 8, .pp = 35, .global_batch = 280};
  EXPECT_EQ(run_of(c).layout.dp, 1);
  c.gpus = 2240;
  EXPECT_EQ(run_of(c).layout.dp, 8);
}

// 1e6 / 32,768 = 30.5 and 1e6 / 32,000 = 31.25.
TEST(WorkedRuns, AMillionTokensOf32kAre31Or32MicroBatches) {
  const auto needed = [](int sequence) {
    RunCase c{.model = "llama-3.1-70b", .cluster = "dgx-h100", .sequence = sequence};
    std::int64_t micro_batches = 0;
    for (std::int64_t tokens = 0; tokens < 1'000'000; ++c.global_batch) {
      const Scenario scenario = run_of(c);
      micro_batches = scenario.micro_batches();
      tokens = scenario.training.global_batch * scenario.training.sequence_length;
    }
    return micro_batches;
  };
  EXPECT_EQ(needed(32768), 31);
  EXPECT_EQ(needed(32000), 32);
}

// 6 P FLOPs per token over 300e9 tokens (Brown et al. 2020, table D.1): 3.14e23.
TEST(WorkedRuns, Gpt3Takes355YearsOfAV100And32OfAnA100) {
  const Scenario scenario = run_of({});
  const double parameters = static_cast<double>(count_parameters(scenario.model).total());
  const Flops work(6 * parameters * 300e9);
  EXPECT_NEAR(work.value(), 3.14e23, 0.005e23);
  const Seconds year(365 * 86400.0);
  EXPECT_NEAR(work / 28_TFLOPS / year, 355, 1);
  const FlopsPerSecond a100 = *scenario.cluster.spec.accelerator.peak(DataType::kBf16);
  EXPECT_NEAR(work / a100 / year, 31.9, 0.1);
  EXPECT_NEAR(work / (0.5 * a100) / year, 64, 0.2);
  // The definition's FLOPs, with attention, are within a few percent of 6 P.
  const Flops step = model_flops(scenario);
  const double tokens = static_cast<double>(scenario.training.sequence_length);
  EXPECT_NEAR(step.value() / tokens / (6 * parameters), 1.02, 0.02);
}

// 419 failures in 54 days of 16,384 GPUs (Grattafiori et al. 2024, section 3.3.4): per node and day
// 419 / (54 x 2048) = 0.0038.
TEST(WorkedRuns, SixteenThousandGpusFailEvery3HoursAndTwoThousandOncePerDay) {
  const auto nodes = [](int gpus) {
    return static_cast<double>(run_of({.model = "llama-3.1-405b",
                                       .cluster = "grand-teton-h100-96g",
                                       .gpus = gpus,
                                       .tp = 8,
                                       .global_batch = gpus})
                                   .cluster.spec.nodes);
  };
  const double rate = 419 / (54 * nodes(16384));
  EXPECT_NEAR(rate, 0.0038, 5e-5);
  EXPECT_NEAR(24 / (rate * nodes(16384)), 3.1, 0.05);
  EXPECT_NEAR(24 / (rate * nodes(2000)), 25, 0.5);
}

// tp x pp x dp = n: what is left of 64 after 8 x 4 is 2. A layout that leaves GPUs idle is refused.
TEST(WorkedRuns, ALayoutOf64GpusUsesAllOfThem) {
  RunCase c{.gpus = 64, .tp = 8, .pp = 4, .global_batch = 64};
  EXPECT_EQ(run_of(c).layout.dp, 2);
  c.tp = c.pp = 1;
  std::string text = testing::text_of(c);
  const std::string key = R"("layout": {)";
  text.insert(text.find(key) + key.size(), R"("dp": 8, )");
  auto document = JsonDocument::parse(text, "helper.json");
  ASSERT_TRUE(document);
  const auto refused = read_scenario(**document, testing::source_folders());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().front().path, "layout.dp") << to_string(refused.error());
  EXPECT_EQ(refused.error().front().code, ErrorCode::kIllegal);
}

}  // namespace
}  // namespace stepcast
