// SPDX-License-Identifier: Apache-2.0
// Lines of training logs as their tools print them, a few of each, with where they come from. Times
// of further steps are made by the tests.
#pragma once

#include <string>

namespace stepcast::samples {

// NVIDIA/Megatron-LM, megatron/training.py of 2019: no samples, no batch.
inline const std::string kMegatron2019 =
    " iteration      {}/  320000 | elapsed time per iteration (ms): 512.3 | learning rate "
    "1.000E-04 "
    "| lm loss 6.543210E+00 | loss scale 65536.0 |\n";

// bigscience-workshop/Megatron-DeepSpeed of 2021, with tokens beside samples.
inline const std::string kMegatron2021 =
    " iteration      {}/  250000 | consumed samples:       124928 | consumed tokens:    255852544 "
    "| "
    "elapsed time per iteration (ms): 86545.2 | learning rate: 9.150E-06 | global batch size:  "
    "1024 "
    "| lm loss: 2.504220E+00 | loss scale: 1.0 | grad norm: 0.231 | number of skipped iterations:  "
    " "
    "0 | number of nan iterations:   0 |\n";

// NVIDIA/Megatron-LM core 0.12 (April 2025): the time in brackets, throughput where it is asked
// for.
inline const std::string kMegatron2025 =
    " [2025-04-13 23:41:57] iteration {}/    1000 | consumed samples:          960 | elapsed time "
    "per iteration (ms): 837.6 | throughput per GPU (TFLOP/s/GPU): 231.9 | learning rate: "
    "9.980959E-05 | global batch size:    16 | lm loss: 8.638345E+00 | loss scale: 4096.0 | grad "
    "norm: 2.221 | num zeros: 949.0 | number of skipped iterations:   0 | number of nan "
    "iterations: "
    "  0 |\n";

// Its release of 2026: microseconds, skipped samples, energy.
inline const std::string kMegatron2026 =
    " [2026-04-27 00:00:01.123456] iteration {}/       3 | consumed samples:            2 | "
    "skipped "
    "samples:            0 | elapsed time per iteration (ms): 4000.0 | energy per GPU "
    "(J/iter/GPU): "
    "812.1 | learning rate: 1.000000E-05 | global batch size:     8 | lm loss: 3.000000E+00 | "
    "number "
    "of skipped iterations:   0 | number of nan iterations:   0 |\n";

// AMD-AGI/Primus patches the line: instant and mean, memory of the device.
inline const std::string kPrimus =
    " [2025-11-02 10:11:12] iteration {}/      50 | consumed samples:         5120 | elapsed time "
    "per "
    "iteration (ms): 6046.6/6044.1 | hip mem usage/free/total/usage_ratio: "
    "120.10GB/71.88GB/191.98GB/62.56% | throughput per GPU (TFLOP/s/GPU): 512.0/512.2 | "
    "tokens/s/GPU "
    "inst/harmonic mean: 10410.2/10398.7 | global batch size:   512 | lm loss: 1.1E+01 |\n";

inline const std::string kMegatronMemory =
    "[Rank 0] (after 1 iterations) memory (MB) | allocated: 1464.3 | max allocated: 99999.0 | "
    "reserved: 1576.0 | max reserved: 99999.0\n"
    "[Rank 0] (after 2 iterations) memory (MB) | allocated: 54250.97802734375 | max allocated: "
    "54250.98583984375 | reserved: 61480.0 | max reserved: 61480.0\n"
    "[Rank 8] (after 2 iterations) memory (MB) | allocated: 40000.0 | max allocated: 41000.5 | "
    "reserved: 42000.0 | max reserved: 42000.0\n";

// NVIDIA-NeMo/Megatron-Bridge (2025): rank 0 prints this before the last rank's line.
inline const std::string kBridge = "Step Time : 9.09s GPU utilization: 663.5MODEL_TFLOP/s/GPU\n";
inline const std::string kBridgeMemory =
    "(after 2 iterations) memory (GB) | mem-allocated-gigabytes: 30.1 | "
    "mem-max-allocated-gigabytes: "
    "52.41\n";

// NVIDIA/NeMo 2.0: fields in another order each release, counted from 0.
inline const std::string kNemo2 =
    "Training epoch 0, iteration {}/49 | lr: 7.496e-06 | global_batch_size: 128 | global_step: {} "
    "| "
    "peak_memory_usage: 70833405952 | reduced_train_loss: 6.181 | train_step_timing in s: 12.39\n";
inline const std::string kNemo2Later =
    "Training epoch 0, iteration {}/99 | lr: 7.496e-06 | global_step: {} | reduced_train_loss: "
    "6.181 "
    "| train_step_timing in s: 12.21 | tokens_per_sec_per_gpu: 1.074e+04 | val_loss: 5.9\n";
// NVIDIA/NeMo 1: a progress bar.
inline const std::string kNemo1 =
    "Epoch 0: :   1%|          | {}/76500 [9:07:58<878:01:48, 41.36s/it, loss=2.1, v_num=0, "
    "reduced_train_loss=2.080, global_step={}.0, consumed_samples=1.63e+6]\r";

// NVIDIA-NeMo/Automodel, recipes/llm/train_ft.py (2026), and its training.jsonl.
inline const std::string kAutomodel =
    "2026-08-10 15:55:20 | INFO | root | step {} | epoch 0 | loss 0.6974 | grad_norm 1.5436 | lr "
    "1.00e-05 | mem 24.90 GiB | tps 11278.56(1409.82/gpu) | num_label_tokens 21541\n";
inline const std::string kAutomodelLines =
    "{\"step\": {}, \"epoch\": 0, \"loss\": 0.6974, \"lr\": 1e-05, \"mem\": 24.9, \"tps\": "
    "11278.56, "
    "\"tps_per_gpu\": 1409.82}\n";

// pytorch/torchtitan: words per second in 2024, since 2025 with FLOPs; the lines at its start.
inline const std::string kTorchtitan2024 =
    "2024-08-20 12:00:00,100 - root - INFO - step: {}  loss:  7.1  memory: 20.44GiB(25.84%)  wps: "
    "6,210  mfu: 37.00%\n";
inline const std::string kTorchtitan2025 =
    "[rank0]:[titan] 2025-03-12 11:10:21,511 - root - INFO - step: {}  loss:  6.2250  memory:  "
    "1.41GiB(1.79%)  tps: 193,831  tflops: 18.36  mfu: 1.86%\n";
inline const std::string kTorchtitan2026 =
    "\x1b[31m[titan] 2026-02-24 19:46:17,508 - root - INFO - \x1b[36mstep:  {}  \x1b[32mloss:  "
    "7.62585  \x1b[38;2;180;60;0mgrad_norm: 26.6250  \x1b[34mmemory: 66.91GiB(37.51%)  "
    "\x1b[36mtps: 10,050  \x1b[39mtflops: 314.71  mfu: N/A\x1b[39m\n";
inline const std::string kTorchtitanStart =
    "[rank0]:[titan] 2025-03-12 11:10:01,000 - root - INFO - Building device mesh with "
    "parallelism: "
    "pp=1, dp_replicate=2, dp_shard=4, cp=1, tp=2, ep=1\n"
    "[rank0]:[titan] 2025-03-12 11:10:02,000 - root - INFO - Trainer is initialized with local "
    "batch "
    "size 2, global batch size 16, gradient accumulation steps 1, sequence length 8192, total "
    "steps "
    "1000 (warmup 200)\n";
inline const std::string kTorchtitanStart2026 =
    "[titan] 2026-03-12 11:10:02,000 - root - INFO - Trainer is initialized with 16,384 tokens per "
    "DP "
    "rank, 131,072 tokens per train step, gradient accumulation steps 1, maximum context length "
    "8,192, total steps 1000 (warmup 200)\n";

// microsoft/DeepSpeed, deepspeed/utils/timer.py.
inline const std::string kDeepSpeed =
    "[2023-07-25 21:03:17,269] [INFO] [timer.py:215:stop] epoch=0/micro_step={}/global_step={}, "
    "RunningAvgSamplesPerSec=7.86, CurrSamplesPerSec=8.00, MemAllocated=0.26GB, "
    "MaxMemAllocated=63.31GB\n";
inline const std::string kDeepSpeed2022 =
    "[2022-03-11 02:06:58,985] [INFO] [timer.py:189:stop] 0/{}, SamplesPerSec=83.48609168106144, "
    "MemAllocated=0.26GB, MaxMemAllocated=9.02GB\n";

// huggingface/transformers: tqdm's bar, the dictionary of Axolotl and that at the end.
inline const std::string kTrainerBar =
    "  1%|\u258f         | {}/7252 [24:16<29:02:42, 14.62s/it]\r";
inline const std::string kTrainerFastBar = "  1%|#         | {}/7252 [00:16<02:42, 4.00it/s]\r";
inline const std::string kAxolotl =
    "{'loss': '0.7157', 'grad_norm': '12.79', 'memory/max_active (GiB)': '2.98', "
    "'memory/max_allocated "
    "(GiB)': '2.50', 'tokens/train_per_sec_per_gpu': '4211.5', 'tokens/total': 512, 'epoch': "
    "'0.1333'}\n";
inline const std::string kTrainerEnd =
    "{'train_runtime': 812.4, 'train_samples_per_second': 9.85, 'train_steps_per_second': 0.154, "
    "'train_loss': 1.2, 'epoch': 1.0}\n";
inline const std::string kTrainerState =
    R"({"global_step": 125, "max_steps": 125, "train_batch_size": 4, "log_history": [
  {"loss": 1.5, "epoch": 0.1, "step": 10}, {"eval_loss": 1.4, "eval_runtime": 10.0, "step": 100},
  {"train_runtime": 812.4, "train_samples_per_second": 9.85, "train_steps_per_second": 0.154,
   "train_loss": 1.2, "step": 125}]})";

// mosaicml/llm-foundry: Composer's console.
inline const std::string kComposer =
    "[batch={}/20]:\n"
    "\t Train time/batch: 5\n"
    "\t Train loss/train/total: 11.98\n"
    "\t Train memory/peak_reserved_mem: 44.7960\n"
    "\t Train trainer/device_train_microbatch_size: 4\n"
    "\t Train throughput/device/tokens_per_sec: 7785.3322\n";

// AI-Hypercomputer/maxtext.
inline const std::string kMaxText =
    "completed step: {}, seconds: 3.412, TFLOP/s/device: 312.5, Tokens/s/device: 7203.1, "
    "total_weights: 65536, loss: 2.1\n";

// mlcommons/logging: Llama 3.1 8B of an AMD submission to Training v5.1, a line of one moment.
inline std::string mllog(const std::string& time_ms, const std::string& key,
                         const std::string& value, const std::string& metadata) {
  return ":::MLLOG {\"namespace\": \"\", \"time_ms\": " + time_ms +
         ", \"event_type\": \"POINT_IN_TIME\", \"key\": \"" + key + "\", \"value\": " + value +
         ", \"metadata\": {\"file\": \"/workspace/code/src/callbacks.py\", \"lineno\": 341" +
         metadata + "}}\n";
}
inline const std::string kMlperfStart = mllog("1760028253000", "global_batch_size", "32", "") +
                                        mllog("1760028253000", "max_sequence_length", "8192", "") +
                                        mllog("1760028253484", "run_start", "null", "");
inline const std::string kMlperfStats = mllog(
    "1760033997670", "tracked_stats", "{\"throughput\": 30.694928437391837}", ", \"step\": {}");

// Exports of W&B: a chart and a run, and TensorBoard of a tag.
inline const std::string kChart =
    "\"Step\",\"llama-8b - iteration-time\",\"llama-8b - iteration-time__MIN\",\"llama-8b - "
    "iteration-time__MAX\"\n";
inline const std::string kHistory =
    "_step,_runtime,_timestamp,loss,throughput/device/tokens_per_sec,batch-size\n";
inline const std::string kTensorBoard = "Wall time,Step,Value\n";

// The sample with a count at each "{}".
inline std::string at(std::string sample, long count) {
  for (std::size_t place = sample.find("{}"); place != std::string::npos;
       place = sample.find("{}", place + 1)) {
    sample.replace(place, 2, std::to_string(count));
  }
  return sample;
}

// The sample for each of the steps from `first` to `last`.
inline std::string steps(const std::string& sample, long first, long last, long every = 1) {
  std::string out;
  for (long step = first; step <= last; step += every) out += at(sample, step);
  return out;
}

}  // namespace stepcast::samples
