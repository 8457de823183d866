// SPDX-License-Identifier: Apache-2.0
#include "logs/log_forms.h"

#include <iterator>

#include "logs/log_number.h"

namespace stepcast {
namespace {

using enum LogQuantity;
using enum LogSource;
using enum LogLineKind;

constexpr double kMilli = 1e-3;
constexpr double kMiB = 1048576, kGiB = 1073741824, kGB = 1e9;

// The words of a case about what the log leaves open.
constexpr const char* kRunTime =
    "step time: of the whole run, with compilation, data, evaluation and saving";
constexpr const char* kOlderTimer = "step time: a running mean, which may count micro-steps";
constexpr const char* kThroughput = "step time: the throughput counts samples";
constexpr const char* kSmoothed = "step time: as a progress bar smooths it";

constexpr LogTool kTools[] = {
    {"Megatron-LM"},
    {"NeMo"},
    {"Megatron-Bridge", true},
    {"NeMo AutoModel"},
    {"torchtitan"},
    {"Composer"},
    {"MaxText"},
    {"MLPerf", true},
    {"MLPerf", true, kThroughput},
    {"DeepSpeed", true},
    {"DeepSpeed", true, kOlderTimer},
    {"Hugging Face Trainer", true},
    {"Hugging Face Trainer", true, kSmoothed},
    {"Hugging Face Trainer", true, kRunTime, true},
    {"a table of metrics"},
};
static_assert(std::size(kTools) == static_cast<std::size_t>(kSources));

const std::vector<LogForm> kForms = {
    // NVIDIA/Megatron-LM, megatron/training/training.py, 2019 to 2026. Forks misspell a label, or
    // print names with equals signs.
    {kMegatron,
     kTellsStep,
     {"iteration", "elapsed time per iteration (ms)"},
     {{kStep, "iteration"},
      {kTotalSteps, "/"},
      {kSeconds, "elapsed time per iteration (ms)", kMilli},
      {kGlobalBatch, "global batch size"},
      {kGlobalBatch, "gloabl batch size"},
      {kSkipped, "number of skipped iterations"},
      {kNotNumbers, "number of nan iterations"},
      {kLoss, "lm loss"}}},
    {kMegatron,
     kTellsStep,
     {"iteration=", "elapsed_time_per_iteration_ms="},
     {{kStep, "iteration"},
      {kTotalSteps, "/"},
      {kSeconds, "elapsed_time_per_iteration_ms", kMilli},
      {kGlobalBatch, "global_batch_size"},
      {kLoss, "lm_loss"}}},
    {kMegatron,
     kMemory,
     {"memory (MB)", "max allocated"},
     {{kAfterSteps, "after"},
      {kAllocated, "max allocated", kMiB},
      {kReserved, "max reserved", kMiB}}},
    {kMegatron,
     kSettings,
     {"using world size"},
     {{kGpus, "world size"},
      {kTp, "tensor-model-parallel size"},
      {kPp, "pipeline-model-parallel size"},
      {kCp, "context-parallel size"}}},
    {kMegatron, kSettings, {"padded vocab (size"}, {{kVocab, "size"}}},
    {kMegatron, kStarts, {"successfully loaded checkpoint from"}},
    {kMegatron, kStarts, {"[before the start of training step]"}},
    {kMegatron, kDisturbs, {"validation loss at iteration"}},
    {kMegatron, kDisturbs, {"saving checkpoint at iteration"}},
    {kMegatron, kDisturbs, {"successfully saved checkpoint"}},
    // NVIDIA-NeMo/Megatron-Bridge, src/megatron/bridge/training/utils/train_utils.py, 2025. The
    // last rank prints Megatron's line beside it.
    {kBridge, kTellsStep, {"Step Time :", "GPU utilization"}, {{kSeconds, "Step Time"}}},
    {kBridge,
     kMemory,
     {"memory (GB)", "mem-max-allocated-gigabytes"},
     {{kAfterSteps, "after"},
      {kAllocated, "mem-max-allocated-gigabytes", kGB},
      {kReserved, "mem-max-reserved-gigabytes", kGB}}},
    // NVIDIA/NeMo 2 by Lightning, and the progress bars of NeMo 1.
    {kNemo,
     kTellsStep,
     {"Training epoch", "train_step_timing in s"},
     {{kStep, "global_step"},
      {kStep, "iteration"},
      {kSeconds, "train_step_timing in s"},
      {kGlobalBatch, "global_batch_size"},
      {kAllocated, "peak_memory_usage"},
      {kLoss, "reduced_train_loss"}}},
    {kNemo,
     kTellsStep,
     {"global_step=", "train_step_timing in s="},
     {{kStep, "global_step"}, {kSeconds, "train_step_timing in s"}, {kLoss, "reduced_train_loss"}}},
    {kNemo,
     kTellsStep,
     {"s/it", "global_step="},
     {{kStep, "global_step"}, {kSeconds, "s/it", 1, true}, {kLoss, "reduced_train_loss"}}},
    {kNemo, kDisturbs, {"Validation: iteration"}},
    // NVIDIA-NeMo/Automodel, recipes/llm/train_ft.py: the console, and training.jsonl.
    {kAutomodel,
     kTellsStep,
     {"step ", "| tps "},
     {{kStep, "step"}, {kTokensPerSecond, "tps"}, {kAllocated, "mem", kGiB}, {kLoss, "loss"}}},
    {kAutomodel,
     kTellsStep,
     {"{", "\"step\"", "\"tps\""},
     {{kStep, "step"}, {kTokensPerSecond, "tps"}, {kAllocated, "mem", kGiB}, {kLoss, "loss"}}},
    // pytorch/torchtitan, torchtitan/components/metrics.py; "wps" until 2024.
    {kTorchtitan,
     kTellsStep,
     {"step:", "tps:"},
     {{kStep, "step"},
      {kTokensPerSecondPerGpu, "tps"},
      {kReserved, "memory", kGiB},
      {kLoss, "loss"}},
     "validate step:"},
    {kTorchtitan,
     kTellsStep,
     {"step:", "wps:"},
     {{kStep, "step"},
      {kTokensPerSecondPerGpu, "wps"},
      {kReserved, "memory", kGiB},
      {kLoss, "loss"}},
     "validate step:"},
    {kTorchtitan,
     kSettings,
     {"Trainer is initialized with", "global batch size", "sequence length"},
     {{kMicroBatch, "local batch size"},
      {kGlobalBatch, "global batch size"},
      {kSequence, "sequence length"}}},
    {kTorchtitan,
     kSettings,
     {"Trainer is initialized with", "tokens per train step", "maximum context length"},
     {{kTokensPerStep, "tokens per train step", 1, true}, {kSequence, "maximum context length"}}},
    {kTorchtitan,
     kSettings,
     {"Building device mesh with parallelism"},
     {{kPp, "pp"},
      {kReplicas, "dp_replicate"},
      {kShards, "dp_shard"},
      {kCp, "cp"},
      {kTp, "tp"},
      {kEp, "ep"}}},
    {kTorchtitan, kStarts, {"Training starts at step"}},
    {kTorchtitan, kDisturbs, {"validate step:"}},
    {kTorchtitan, kDisturbs, {"Saving the checkpoint"}},
    // mosaicml/composer as mosaicml/llm-foundry logs to the console.
    {kComposer, kHeading, {"[batch="}, {{kStep, "batch"}, {kTotalSteps, "/"}}, "Eval"},
    {kComposer,
     kUnder,
     {"throughput/device/tokens_per_sec:"},
     {{kTokensPerSecondPerGpu, "throughput/device/tokens_per_sec"}}},
    {kComposer, kUnder, {"loss/train/total:"}, {{kLoss, "loss/train/total"}}},
    {kComposer,
     kUnder,
     {"memory/peak_reserved_mem:"},
     {{kReserved, "memory/peak_reserved_mem", kGB}}},
    {kComposer,
     kSettings,
     {"trainer/device_train_microbatch_size:"},
     {{kMicroBatch, "trainer/device_train_microbatch_size"}}},
    {kComposer, kDisturbs, {"[Eval batch="}},
    // AI-Hypercomputer/maxtext.
    {kMaxText,
     kTellsStep,
     {"completed step:", "seconds:"},
     {{kStep, "completed step"}, {kSeconds, "seconds"}, {kLoss, "loss"}}},
    // mlcommons/logging. Blocks stand between evaluations.
    {kMlperfBlocks,
     kBlockBegins,
     {":::MLLOG", "\"block_start\""},
     {{kClock, "time_ms", kMilli}, {kSamples, "samples_count"}, {kSamples, "step"}}},
    {kMlperfBlocks,
     kBlockEnds,
     {":::MLLOG", "\"block_stop\""},
     {{kClock, "time_ms", kMilli}, {kSamples, "samples_count"}, {kSamples, "step"}}},
    {kMlperf,
     kTellsStep,
     {":::MLLOG", "\"tracked_stats\"", "\"throughput\""},
     {{kSamples, "step"}, {kSamplesPerSecond, "throughput"}}},
    {kMlperf, kSettings, {":::MLLOG", "\"global_batch_size\""}, {{kGlobalBatch, "value"}}},
    {kMlperf, kSettings, {":::MLLOG", "\"max_sequence_length\""}, {{kSequence, "value"}}},
    {kMlperf, kStarts, {":::MLLOG", "\"run_start\""}},
    // microsoft/DeepSpeed, deepspeed/utils/timer.py, since and before the end of 2022.
    {kDeepSpeed,
     kTellsStep,
     {"CurrSamplesPerSec="},
     {{kStep, "global_step"},
      {kSamplesPerSecond, "CurrSamplesPerSec"},
      {kAllocated, "MaxMemAllocated", kGiB}}},
    {kOlderDeepSpeed,
     kTellsStep,
     {"stop]", "/", "SamplesPerSec="},
     {{kStep, "/"}, {kSamplesPerSecond, "SamplesPerSec"}, {kAllocated, "MaxMemAllocated", kGiB}},
     "CurrSamplesPerSec="},
    {kDeepSpeed, kDisturbs, {"OVERFLOW! Rank 0 Skipping step"}},
    {kDeepSpeed, kDisturbs, {"Grad overflow on iteration"}},
    // huggingface/transformers and what prints through it: Axolotl's rates, tqdm's bars, the end.
    {kTrainerRate,
     kTellsStep,
     {"'tokens/train_per_sec_per_gpu'"},
     {{kTokensPerSecondPerGpu, "tokens/train_per_sec_per_gpu"},
      {kAllocated, "memory/max_allocated (GiB)", kGiB},
      {kReserved, "memory/device_reserved (GiB)", kGiB},
      {kLoss, "loss"}}},
    {kTrainerBar,
     kTellsStep,
     {"%|", "/", "[", "s/it"},
     {{kStep, "|"}, {kTotalSteps, "/"}, {kSeconds, "s/it", 1, true}},
     "global_step=",
     true},
    {kTrainerBar,
     kTellsStep,
     {"%|", "/", "[", "it/s"},
     {{kStep, "|"}, {kTotalSteps, "/"}, {kStepsPerSecond, "it/s", 1, true}},
     "global_step=",
     true},
    {kTrainerSummary,
     kTellsStep,
     {"'train_runtime'", "'train_samples_per_second'"},
     {{kRunSeconds, "train_runtime"}, {kSamplesPerSecond, "train_samples_per_second"}}},
    {kTrainerBar, kDisturbs, {"'eval_loss'"}},
    {kTrainerBar, kDisturbs, {"Saving model checkpoint"}},
};

constexpr LogBlock kBlocks[] = {
    {"megatron", "--- arguments ---", "--- end of arguments ---"},
    {"torchtitan", "Running with args: {", nullptr},
    {"torchtitan", "Running with configs: {", nullptr},
    {"deepspeed", "  json = {", nullptr},
};

constexpr LogColumn kColumns[] = {
    {"_step", kStep},
    {"Step", kStep},
    {"step", kStep},
    {"trainer/global_step", kStep},
    {"Wall time", kClock},
    {"iteration-time", kSeconds},                                  // Megatron-LM, -Bridge
    {"train_step_timing in s", kSeconds},                          // NeMo
    {"throughput/device/tokens_per_sec", kTokensPerSecondPerGpu},  // Composer, Bridge
    {"throughput(tps)", kTokensPerSecondPerGpu},                   // torchtitan
    {"tokens/train_per_sec_per_gpu", kTokensPerSecondPerGpu},      // Axolotl
    {"tokens_per_sec_per_gpu", kTokensPerSecondPerGpu},            // NeMo
    {"tps_per_gpu", kTokensPerSecondPerGpu},                       // AutoModel
    {"throughput/batches_per_sec", kStepsPerSecond},               // Composer
    {"batch-size", kGlobalBatch},
    {"global_batch_size", kGlobalBatch},
    {"throughput/global_batch_size", kGlobalBatch},
    {"throughput/micro_batch_size", kMicroBatch},
    {"mem-max-allocated-bytes", kAllocated},
    {"memory/max_reserved(GiB)", kReserved, kGiB},
    {"memory/peak_reserved_mem", kReserved, kGB},
    {"lm loss", kLoss},
    {"loss", kLoss},
};

}  // namespace

const LogTool& tool_of(LogSource source) { return kTools[static_cast<std::size_t>(source)]; }

std::span<const LogForm> log_forms() { return kForms; }
std::span<const LogBlock> log_blocks() { return kBlocks; }
std::span<const LogColumn> log_columns() { return kColumns; }

bool is_of(const LogForm& form, std::string_view line) {
  if (form.begins_with_a_number) {
    const std::size_t first = line.find_first_not_of(' ');
    if (first == std::string_view::npos || !is_digit(line[first])) return false;
  }
  std::size_t at = 0;
  for (const std::string_view word : form.words) {
    at = line.find(word, at);
    if (at == std::string_view::npos) return false;
    at += word.size();
  }
  return form.without == nullptr || line.find(form.without) == std::string_view::npos;
}

}  // namespace stepcast
