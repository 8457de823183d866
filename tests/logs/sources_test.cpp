// SPDX-License-Identifier: Apache-2.0
// Every source and release that docs/import-logs.md names: its lines are read, and give the figures
// that they state.
#include <gtest/gtest.h>

#include "core/each.h"
#include "logs/log_figures.h"
#include "logs/log_of.h"
#include "logs/samples.h"
#include "logs/training_log.h"

namespace stepcast {
namespace {

using namespace samples;
using enum LogQuantity;

struct Sample {
  const char* name;
  std::string text;
  LogSource source;
  LogQuantity unit;
  double rate;
  std::int64_t batch = 0;
  double allocated = 0, reserved = 0;  // bytes
};

// 16 lines of each, of which the first five are warm-up: 11 are left.
const std::vector<Sample>& cases() {
  static const std::vector<Sample> kCases = {
      {"Megatron 2019", steps(kMegatron2019, 1, 16), LogSource::kMegatron, kSeconds, 0.5123},
      {"Megatron 2021", steps(kMegatron2021, 1, 16), LogSource::kMegatron, kSeconds, 86.5452, 1024},
      {"Megatron 2025", kMegatronMemory + steps(kMegatron2025, 1, 16), LogSource::kMegatron,
       kSeconds, 0.8376, 16, 54250.98583984375 * 1048576, 61480.0 * 1048576},
      {"Megatron 2026", steps(kMegatron2026, 1, 16), LogSource::kMegatron, kSeconds, 4.0, 8},
      {"Primus", steps(kPrimus, 1, 16), LogSource::kMegatron, kSeconds, 6.0466, 512},
      {"Megatron-Bridge, rank 0 alone", steps(kBridge, 1, 16) + kBridgeMemory, LogSource::kBridge,
       kSeconds, 9.09, 0, 52.41e9},
      {"Megatron-Bridge", steps(kBridge + kMegatron2025, 1, 16), LogSource::kMegatron, kSeconds,
       0.8376, 16},
      {"NeMo 2", steps(kNemo2, 0, 16), LogSource::kNemo, kSeconds, 12.39, 128, 70833405952},
      {"NeMo 2, later", steps(kNemo2Later, 0, 16), LogSource::kNemo, kSeconds, 12.21},
      {"NeMo 1", steps(kNemo1, 1, 16), LogSource::kNemo, kSeconds, 41.36},
      {"AutoModel", steps(kAutomodel, 1, 16), LogSource::kAutomodel, kTokensPerSecond, 11278.56, 0,
       24.9 * 1073741824},
      {"AutoModel's training.jsonl", steps(kAutomodelLines, 1, 16), LogSource::kAutomodel,
       kTokensPerSecond, 11278.56, 0, 24.9 * 1073741824},
      {"torchtitan 2024", steps(kTorchtitan2024, 1, 16), LogSource::kTorchtitan,
       kTokensPerSecondPerGpu, 6210, 0, 0, 20.44 * 1073741824},
      {"torchtitan 2025", steps(kTorchtitan2025, 1, 16), LogSource::kTorchtitan,
       kTokensPerSecondPerGpu, 193831, 0, 0, 1.41 * 1073741824},
      {"torchtitan 2026, in colors", steps(kTorchtitan2026, 1, 16), LogSource::kTorchtitan,
       kTokensPerSecondPerGpu, 10050, 0, 0, 66.91 * 1073741824},
      {"DeepSpeed", steps(kDeepSpeed, 1, 16), LogSource::kDeepSpeed, kSamplesPerSecond, 8, 0,
       63.31 * 1073741824},
      {"DeepSpeed 2022", steps(kDeepSpeed2022, 1, 16), LogSource::kOlderDeepSpeed,
       kSamplesPerSecond, 83.48609168106144, 0, 9.02 * 1073741824},
      {"the Trainer's bar", steps(kTrainerBar, 1, 16), LogSource::kTrainerBar, kSeconds, 14.62},
      {"a fast bar", steps(kTrainerFastBar, 1, 16), LogSource::kTrainerBar, kStepsPerSecond, 4},
      {"Axolotl", steps(kAxolotl, 1, 16), LogSource::kTrainerRate, kTokensPerSecondPerGpu, 4211.5,
       0, 2.5 * 1073741824},
      {"the Trainer's end", kTrainerEnd, LogSource::kTrainerSummary, kSamplesPerSecond, 9.85},
      {"trainer_state.json", kTrainerState, LogSource::kTrainerSummary, kSamplesPerSecond, 9.85},
      {"llm-foundry", steps(kComposer, 1, 16), LogSource::kComposer, kTokensPerSecondPerGpu,
       7785.3322, 0, 0, 44.796e9},
      {"MaxText", steps(kMaxText, 1, 16), LogSource::kMaxText, kSeconds, 3.412},
      {"MLPerf", kMlperfStart + steps(kMlperfStats, 320, 5120, 320), LogSource::kMlperf,
       kSamplesPerSecond, 30.694928437391837},
      {"a chart of W&B", kChart + steps("{},5.75,5.70,5.80\n", 1, 16), LogSource::kTable, kSeconds,
       5.75},
      {"a history of W&B", kHistory + steps("{},1.5,1760028253.1,2.5,7785.5,256\n", 1, 16),
       LogSource::kTable, kTokensPerSecondPerGpu, 7785.5, 256},
  };
  return kCases;
}

TEST(LogSources, EachGivesTheFiguresThatItStates) {
  for (const Sample& one : each_of(cases())) {
    const TrainingLog log = log_of(one.text);
    ASSERT_FALSE(log.steps.steps.empty()) << one.name;
    EXPECT_EQ(log.steps.source, one.source) << one.name;
    const auto figures = figures_of(log);
    ASSERT_TRUE(figures) << one.name << ": " << to_string(figures.error());
    EXPECT_EQ(figures->unit, one.unit) << one.name;
    EXPECT_DOUBLE_EQ(figures->median, one.rate) << one.name;
    EXPECT_EQ(figures->batch, one.batch) << one.name;
    EXPECT_DOUBLE_EQ(log.most_allocated_bytes.value_or(0), one.allocated) << one.name;
    EXPECT_DOUBLE_EQ(log.most_reserved_bytes.value_or(0), one.reserved) << one.name;
    EXPECT_EQ(log.steps.unreadable, 0) << one.name;
  }
}

// The figures do not depend on who collected the lines.
TEST(LogSources, LauncherTagsTimesAndColorsAreTakenOff) {
  const std::vector<std::string> tags = {"0: ",
                                         "[default0]:",
                                         "[rank0]:",
                                         "[1,0]<stdout>:",
                                         "> ",
                                         "2026-08-10T15:55:20Z ",
                                         "run-8b_fp8/0 ",
                                         "trainer-worker-0: ",
                                         "  [rank0]:",
                                         "\x1b[0m",
                                         "[1,7]<stderr>: 7: "};
  for (const std::string& tag : each_of(tags)) {
    for (const Sample& one : each_of(cases())) {
      if (one.source == LogSource::kTable || one.text[0] == '{') continue;
      std::string tagged;
      bool begins = true;
      for (const char c : one.text) {
        if (begins) tagged += tag;
        tagged += c;
        begins = c == '\n' || c == '\r';
      }
      const auto figures = figures_of(log_of(tagged));
      ASSERT_TRUE(figures) << one.name << " behind " << tag;
      EXPECT_DOUBLE_EQ(figures->median, one.rate) << one.name << " behind " << tag;
    }
  }
}

TEST(LogSources, LinesMayEndInCarriageReturnsAndLineFeeds) {
  for (const Sample& one : each_of(cases())) {
    if (one.text[0] == '{' && one.source == LogSource::kTrainerSummary) continue;
    std::string text;
    for (const char c : one.text) text += c == '\n' ? std::string("\r\n") : std::string(1, c);
    const auto figures = figures_of(log_of(text));
    ASSERT_TRUE(figures) << one.name;
    EXPECT_DOUBLE_EQ(figures->median, one.rate) << one.name;
  }
}

// A block of 12,288 samples in 400 s between evaluations; the first is warm-up.
TEST(LogSources, BlocksOfMlperfLeaveEvaluationOut) {
  std::string text = kMlperfStart;
  for (long block = 0; block < 4; ++block) {
    const long begins = 1760028260000 + 500000 * block;
    const auto mark = [&](const char* key, long time_ms, long samples) {
      return mllog(std::to_string(time_ms), key, "null",
                   ", \"samples_count\": " + std::to_string(samples));
    };
    text += mark("block_start", begins, 12288 * block);
    text += at(kMlperfStats, 12288 * (block + 1));
    text += mark("block_stop", begins + 400000, 12288 * (block + 1));
  }
  const TrainingLog log = log_of(text);
  EXPECT_EQ(log.steps.source, LogSource::kMlperfBlocks);
  const auto figures = figures_of(log);
  ASSERT_TRUE(figures) << to_string(figures.error());
  EXPECT_DOUBLE_EQ(figures->median, 12288.0 / 400);
  EXPECT_EQ(figures->lines, 3);
  EXPECT_EQ(figures->steps, 3 * 12288 / 32);
  EXPECT_DOUBLE_EQ(step_seconds(figures->unit, figures->median, {32, 8192, 8}), 32 / 30.72);
}

// Wall times of 2.5 s a step.
TEST(LogSources, TensorBoardsTimesAreThoseBetweenRows) {
  std::string text = kTensorBoard;
  for (int step = 0; step < 20; ++step) {
    text += std::to_string(1700000000 + 25 * step) + ".5," + std::to_string(10 * step) + ",3.1\n";
  }
  const auto figures = figures_of(log_of(text));
  ASSERT_TRUE(figures) << to_string(figures.error());
  EXPECT_DOUBLE_EQ(figures->median, 2.5);
}

TEST(LogSources, WhatTheyPrintOfTheRunIsKept) {
  const auto of = [](const TrainingLog& log, LogQuantity quantity) {
    const auto found = log.settings.find(quantity);
    return found == log.settings.end() ? 0.0 : found->second;
  };
  const TrainingLog titan = log_of(kTorchtitanStart);
  EXPECT_EQ(of(titan, kTp), 2);
  EXPECT_EQ(of(titan, kReplicas), 2);
  EXPECT_EQ(of(titan, kShards), 4);
  EXPECT_EQ(of(titan, kMicroBatch), 2);
  EXPECT_EQ(of(titan, kGlobalBatch), 16);
  EXPECT_EQ(of(titan, kSequence), 8192);
  const TrainingLog later = log_of(kTorchtitanStart2026);
  EXPECT_EQ(of(later, kTokensPerStep), 131072);
  EXPECT_EQ(of(later, kSequence), 8192);
  const TrainingLog megatron = log_of(
      "using world size: 16, data-parallel size: 2, context-parallel size: 1, "
      "tensor-model-parallel "
      "size: 4, pipeline-model-parallel size: 2\n"
      " > padded vocab (size: 50257) with 431 dummy tokens (new size: 50688)\n");
  EXPECT_EQ(of(megatron, kGpus), 16);
  EXPECT_EQ(of(megatron, kTp), 4);
  EXPECT_EQ(of(megatron, kPp), 2);
  EXPECT_EQ(of(megatron, kVocab), 50257);
  const TrainingLog mlperf = log_of(kMlperfStart);
  EXPECT_EQ(of(mlperf, kGlobalBatch), 32);
  EXPECT_EQ(of(mlperf, kSequence), 8192);
  EXPECT_EQ(of(log_of(at(kComposer, 1)), kMicroBatch), 4);
}

}  // namespace
}  // namespace stepcast
