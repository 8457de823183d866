// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "layout/nearest.h"
#include "recipes/megatron.h"
#include "recipes/megatron_read.h"

namespace stepcast {
namespace {

// Without --global-batch-size Megatron takes one micro-batch of every replica.
void read_batch(FlagList& flags) {
  ImportedScenario& out = flags.imported();
  if (flags.has("--global-batch-size")) return;
  const auto micro = out.integer("layout.micro_batch");
  const std::int64_t model_parallel =
      out.degree("layout.tp") * out.degree("layout.pp") * out.degree("layout.cp");
  if (!out.gpus || *out.gpus % model_parallel != 0) {
    out.fail(ErrorCode::kMissingKey, "--global-batch-size",
             "is missing, and the number of GPUs is not known",
             "--global-batch N, or --cluster NAMExNODES");
    return;
  }
  out.set_integer("training.global_batch",
                  capped_product({micro.value_or(1), *out.gpus / model_parallel}),
                  "--micro-batch-size");
}

// arguments.py: NVFP4 is the only recipe, and first and last layers stay in 16 bits where asked
// for, one each unless counted.
void read_fp4(FlagList& flags) {
  ImportedScenario& out = flags.imported();
  const auto fp4 = flags.choice("--fp4-format", {"e2m1"});
  flags.choice("--fp4-recipe", {"nvfp4"});
  if (fp4) out.set_word("training.precision", "fp4", "--fp4-format");
  if (flags.given("--fp4-param-gather") || flags.given("--fp4-param")) {
    out.set_flag("training.fp8_params", true, "--fp4-param-gather");
  }
  const auto start = flags.integer("--num-layers-at-start-in-bf16", 0);
  const auto end = flags.integer("--num-layers-at-end-in-bf16", 0);
  if (!flags.given("--first-last-layers-bf16")) return;
  out.set_integer("training.first_layers_16_bits", start.value_or(1), "--first-last-layers-bf16");
  out.set_integer("training.last_layers_16_bits", end.value_or(1), "--first-last-layers-bf16");
}

void read_precision(FlagList& flags) {
  ImportedScenario& out = flags.imported();
  const bool bf16 = flags.given("--bf16");
  const bool fp16 = flags.given("--fp16");
  if (bf16 && fp16) {
    out.fail(ErrorCode::kIllegal, "--fp16", "does not go with --bf16", "one of them");
    return;
  }
  const char* half = bf16 ? "bf16" : "fp16";
  out.set_word("training.precision", bf16 || fp16 ? half : "fp32", bf16 ? "--bf16" : "--fp16");
  const bool in_fp32 = flags.given("--accumulate-allreduce-grads-in-fp32");
  const bool in_bf16 = flags.given("--grad-reduce-in-bf16");
  const auto main = flags.choice("--main-grads-dtype", {"fp32", "bf16"});
  if (bf16 && (in_bf16 || main == "bf16")) {
    out.set_word("training.grad_precision", "bf16",
                 in_bf16 ? "--grad-reduce-in-bf16" : "--main-grads-dtype");
  } else if (fp16 && !in_fp32) {
    out.set_word("training.grad_precision", "fp16", "--fp16");
  }
  read_fp4(flags);
  const bool fuses = flags.given("--use-transformer-engine-op-fuser");
  const auto fp8 = flags.choice("--fp8-format", {"e4m3", "hybrid"});
  const auto recipe =
      flags.choice("--fp8-recipe", {"tensorwise", "delayed", "mxfp8", "blockwise", "custom"});
  // Its kernels for experts are of these two recipes (ops/fused/forward_grouped_mlp.py).
  const bool by_blocks = recipe == "mxfp8" || flags.given("--fp4-format");
  if (fuses && by_blocks && out.integer("model.moe.experts")) {
    out.set_flag("model.moe.fused_mlp", true, "--use-transformer-engine-op-fuser");
  }
  if (!fp8) return;
  out.set_word("training.precision", "fp8", "--fp8-format");
  if (recipe != "custom") {
    out.set_word("training.fp8_recipe",
                 recipe == "tensorwise" ? "current" : recipe.value_or("delayed"), "--fp8-recipe");
  }
  if (flags.given("--fp8-param-gather") || flags.given("--fp8-param")) {
    out.set_flag("training.fp8_params", true, "--fp8-param-gather");
  }
  if (flags.given("--fp8-output-proj")) {
    out.set_flag("training.fp8_head", true, "--fp8-output-proj");
  }
}

// An activation that is made again keeps its input as the product wrote it.
void read_stored_input(FlagList& flags) {
  if (!flags.given("--activation-func-fp8-input-store")) return;
  flags.imported().set_flag("training.fp8_activation_input", true,
                            "--activation-func-fp8-input-store");
}

void read_attention_kernel(FlagList& flags) {
  ImportedScenario& out = flags.imported();
  const auto backend =
      flags.choice("--attention-backend", {"auto", "flash", "fused", "unfused", "local"});
  const bool flash = flags.given("--use-flash-attn");
  // Megatron's own modules have DotProductAttention (core/models/backends.py, LocalSpecProvider).
  const auto modules =
      flags.choice("--transformer-impl", {"local", "transformer_engine", "inference_optimized"});
  // cuDNN's fused kernel keeps no score matrix either; auto picks one of the two.
  const bool unfused =
      backend == "unfused" || ((backend == "local" || modules == "local") && !flash);
  out.set_word("training.attention", unfused ? "unfused" : "flash", "--attention-backend");
  if (backend == "fused") {
    out.set_word("training.attention_kernel", kFusedKernel, "--attention-backend");
  } else if (backend == "flash") {
    out.set_word("training.attention_kernel", kFlashKernel, "--attention-backend");
  }
}

void read_fusions(FlagList& flags) {
  ImportedScenario& out = flags.imported();
  const bool gelu = flags.given("--no-bias-gelu-fusion");
  const bool swiglu = flags.given("--no-bias-swiglu-fusion");
  // A model that another file describes is gated, like all of the last years.
  const Setting* mlp = out.find("model.mlp");
  const bool gated = mlp == nullptr || mlp->value == "\"swiglu\"";
  const bool activation = gated ? swiglu : gelu;
  const bool dropout = flags.given("--no-bias-dropout-fusion");
  const bool rotary = flags.given("--no-rope-fusion");
  flags.given("--no-masked-softmax-fusion");  // of the unfused kernel, which is no chain
  if (flags.given("--cross-entropy-loss-fusion")) {
    out.set_flag("training.fused_cross_entropy", true, "--cross-entropy-loss-fusion");
  }
  flags.given("--cross-entropy-fusion-impl");
  if (activation && dropout) {
    out.set_flag("training.compile", false, "--no-bias-dropout-fusion");
  } else if (activation || dropout || rotary) {
    out.warnings.push_back(
        "--no-bias-*-fusion of some operations: stepcast takes all elementwise chains as fused, or "
        "none (--set training.compile=false)");
  }
  if (flags.given("--no-gradient-accumulation-fusion")) {
    out.set_flag("training.fused_gradient_accumulation", false,
                 "--no-gradient-accumulation-fusion");
  }
}

// emerging_optimizers.py: muon_tp_mode.
void read_muon_mode(FlagList& flags) {
  ImportedScenario& out = flags.imported();
  const auto mode = flags.text("--muon-tp-mode");
  if (!mode) return;
  if (*mode == "layer_sharded") {
    out.set_word("training.muon_mode", "layer", "--muon-tp-mode");
  } else if (*mode == "duplicated" || *mode == "distributed" || *mode == "blockwise") {
    out.set_word("training.muon_mode", *mode, "--muon-tp-mode");
  } else {
    out.fail(ErrorCode::kNotSupported, "--muon-tp-mode", *mode + " is not supported yet",
             "duplicated, distributed, blockwise or layer_sharded");
  }
}

void read_optimizer(FlagList& flags) {
  ImportedScenario& out = flags.imported();
  const auto optimizer = flags.text("--optimizer");
  const bool muon = optimizer == "muon" || optimizer == "dist_muon";
  if (muon) {
    out.set_word("training.optimizer", "muon", "--optimizer");
    read_muon_mode(flags);
  } else if (optimizer == "sgd") {
    out.set_word("training.optimizer", "sgd", "--optimizer");
    flags.number("--sgd-momentum");
  } else if (optimizer && *optimizer != "adam") {
    out.fail(ErrorCode::kNotSupported, "--optimizer", *optimizer + " is not supported yet",
             "adam, sgd or muon");
  }
  const auto clip = flags.number("--clip-grad");
  out.set_word("training.grad_clip", clip.value_or(1) > 0 ? "global" : "none", "--clip-grad");
  const auto master = flags.text("--main-params-dtype");
  if (master && *master != "fp32") {
    out.warnings.push_back(
        fmt::format("--main-params-dtype {}: stepcast keeps this state in fp32", *master));
  }
  const auto first = flags.text("--exp-avg-dtype"), second = flags.text("--exp-avg-sq-dtype");
  if (first == "bf16" && second == "bf16") {
    out.set_word("training.moments_precision", "bf16", "--exp-avg-dtype");
    return;
  }
  for (const auto& [flag, type] :
       {std::pair("--exp-avg-dtype", first), std::pair("--exp-avg-sq-dtype", second)}) {
    if (type && *type != "fp32") {
      out.warnings.push_back(fmt::format("{} {}: stepcast keeps this state in fp32", flag, *type));
    }
  }
}

}  // namespace

void read_megatron_training(FlagList& flags) {
  ImportedScenario& out = flags.imported();
  if (!out.find("training.framework")) out.set_word("training.framework", "megatron", "");
  read_batch(flags);
  read_precision(flags);
  read_stored_input(flags);
  read_attention_kernel(flags);
  read_fusions(flags);
  read_optimizer(flags);
  const auto graphs = flags.choice("--cuda-graph-impl", {"none", "local", "transformer_engine"});
  const bool deprecated =
      flags.given("--enable-cuda-graph") || flags.given("--external-cuda-graph");
  const std::vector<std::string> scope = flags.values("--cuda-graph-scope");
  const auto has = [&](const char* part) { return std::ranges::find(scope, part) != scope.end(); };
  if (deprecated || graphs.value_or("none") != "none") {
    if (has("full_iteration")) {
      out.set_word("training.cuda_graphs", "full", "--cuda-graph-scope");
    } else if (has("attn") && !has("mlp") && !has("moe")) {
      out.set_word("training.cuda_graphs", "attention", "--cuda-graph-scope");
    } else if (has("moe_router") && !has("mlp")) {
      out.set_word("training.cuda_graphs", "moe", "--cuda-graph-scope");
    } else {
      out.set_flag("training.cuda_graphs", true, "--cuda-graph-impl");
    }
  }
  flags.given("--te-rng-tracker");
}

}  // namespace stepcast
