// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "layout/scenario.h"

#include "recipes/megatron.h"

namespace stepcast {
namespace {

// Beginnings of flags, and whole ones, that leave the work of a step as it is.
constexpr std::array kWithoutCost = {"--adam-",
                                     "--adlr-",
                                     "--app-tag",
                                     "--apply-layernorm-1p",
                                     "--apply-query-key-layer-scaling",
                                     "--async-save",
                                     "--attention-softmax-in-fp32",
                                     "--auto-detect-ckpt",
                                     "--calculate-per-token-loss",
                                     "--check-for-",
                                     "--check-weight-hash",
                                     "--ckpt-",
                                     "--config-logger",
                                     "--data-",
                                     "--dataloader-type",
                                     "--decoupled-",
                                     "--disable-gloo",
                                     "--disable-msc",
                                     "--dist-ckpt",
                                     "--distrib-optim-fully",
                                     "--distributed-backend",
                                     "--distributed-timeout",
                                     "--empty-unused-memory-level",
                                     "--enable-ft-package",
                                     "--enable-experimental",
                                     "--end-weight-decay",
                                     "--eod-mask-loss",
                                     "--error-injection",
                                     "--eval-",
                                     "--exit-",
                                     "--finetune",
                                     "--full-validation",
                                     "--hysteresis",
                                     "--init-",
                                     "--initial-loss-scale",
                                     "--inference-",
                                     "--iterations-to-skip",
                                     "--load",
                                     "--local-rank",
                                     "--log-",
                                     "--logging-level",
                                     "--loss-scale",
                                     "--lr",
                                     "--manual-gc",
                                     "--master",
                                     "--memory-snapshot-path",
                                     "--merge-file",
                                     "--min-loss-scale",
                                     "--min-lr",
                                     "--mid-level-dataset",
                                     "--mmap",
                                     "--mock-data",
                                     "--moe-aux-loss-coeff",
                                     "--moe-input-jitter-eps",
                                     "--moe-per-layer-logging",
                                     "--moe-router-bias-update-rate",
                                     "--moe-router-topk-scaling-factor",
                                     "--moe-z-loss-coeff",
                                     "--mscale",
                                     "--mtp-loss-scaling",
                                     "--no-barrier-with",
                                     "--no-check-for",
                                     "--no-ckpt",
                                     "--no-create-attention-mask",
                                     "--no-data-sharding",
                                     "--no-initialization",
                                     "--no-load",
                                     "--no-log",
                                     "--no-manual-gc",
                                     "--no-mmap",
                                     "--no-one-logger",
                                     "--no-save",
                                     "--no-use-tokenizer",
                                     "--non-persistent",
                                     "--norm-epsilon",
                                     "--num-dataset-builder",
                                     "--num-workers",
                                     "--object-storage",
                                     "--one-logger",
                                     "--override-opt",
                                     "--per-split-data",
                                     "--persistent-save",
                                     "--pretrained-",
                                     "--profile",
                                     "--record-memory",
                                     "--replication",
                                     "--rerun-mode",
                                     "--reset-",
                                     "--result-rej",
                                     "--rope-scaling",
                                     "--rotary-",
                                     "--run-workload",
                                     "--sample-rate",
                                     "--save",
                                     "--seed",
                                     "--sgd-momentum",
                                     "--skip-train",
                                     "--split",
                                     "--start-weight-decay",
                                     "--tensorboard-",
                                     "--test-data",
                                     "--tiktoken-",
                                     "--timing-log",
                                     "--tokenizer-",
                                     "--train-",
                                     "--trust-remote",
                                     "--use-checkpoint",
                                     "--use-dist-ckpt",
                                     "--use-mcore-models",
                                     "--use-mp-args",
                                     "--use-persistent-ckpt",
                                     "--use-pytorch-profiler",
                                     "--use-rope-scaling",
                                     "--valid-data",
                                     "--vocab-file",
                                     "--wandb-",
                                     "--weight-decay",
                                     "--no-async-tensor-model-parallel-allreduce",
                                     "--fp8-interval",
                                     "--fp8-margin",
                                     "--fp8-amax",
                                     "--rampup-batch-size",
                                     "--lazy-mpu-init",
                                     "--use-cpu-initialization",
                                     "--openai-gelu",
                                     "--no-persist-layer-norm"};

// Flags that begin like one of those but change the cost.
constexpr std::array kWithCost = {"--load-balancing", "--moe-router-load-balancing-type"};

}  // namespace

bool is_megatron_flag_without_cost(std::string_view flag) {
  const auto begins = [&](const char* prefix) { return flag.starts_with(prefix); };
  return std::any_of(kWithoutCost.begin(), kWithoutCost.end(), begins) &&
         std::none_of(kWithCost.begin(), kWithCost.end(), begins);
}

const std::vector<MegatronCount>& megatron_counts() {
  static const std::vector<MegatronCount> counts = {
      {"--num-layers", "model.layers", [](const Scenario& s) { return s.model.layers; }},
      {"--hidden-size", "model.hidden", [](const Scenario& s) { return s.model.hidden; }},
      {"--num-attention-heads", "model.heads", [](const Scenario& s) { return s.model.heads; }},
      {"--max-position-embeddings", "model.max_positions",
       [](const Scenario& s) { return s.model.max_positions; }},
      {"--seq-length", "training.sequence_length",
       [](const Scenario& s) { return s.training.sequence_length; }},
      {"--global-batch-size", "training.global_batch",
       [](const Scenario& s) { return s.training.global_batch; }},
      {"--micro-batch-size", "layout.micro_batch",
       [](const Scenario& s) { return s.layout.micro_batch; }},
      {"--tensor-model-parallel-size", "layout.tp", [](const Scenario& s) { return s.layout.tp; }},
      {"--pipeline-model-parallel-size", "layout.pp",
       [](const Scenario& s) { return s.layout.pp; }},
      {"--context-parallel-size", "layout.cp", [](const Scenario& s) { return s.layout.cp; }},
  };
  return counts;
}

const std::vector<MegatronModule>& megatron_modules() {
  static const std::vector<MegatronModule> modules = {
      {"core_attn", RecomputedModule::kCoreAttention},
      {"moe_act", RecomputedModule::kExpertActivation},
      {"layernorm", RecomputedModule::kLayerNorm},
      {"mla_up_proj", RecomputedModule::kLatentQueries},
      {"mlp", RecomputedModule::kMlp},
      {"moe", RecomputedModule::kExperts},
      {"shared_experts", RecomputedModule::kSharedExperts}};
  return modules;
}

}  // namespace stepcast
