// SPDX-License-Identifier: Apache-2.0
// Megatron's flags as its users write them.
#include "recipes/megatron.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/json_tree.h"
#include "recipes/has.h"
#include "recipes/import.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::has;

ImportedScenario import(const std::string& text,
                        std::map<std::string, std::string> variables = {}) {
  ImportInput input;
  input.text = text;
  input.file = "train.sh";
  input.variables = std::move(variables);
  return read_megatron(input);
}

const std::string kRequired =
    "--num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 "
    "--max-position-embeddings 2048 --micro-batch-size 2 --global-batch-size 64 "
    "--vocab-size 51200 --bf16 ";

SortedJson scenario_of(const std::string& more) {
  const ImportedScenario imported = import("python pretrain_gpt.py " + kRequired + more);
  EXPECT_TRUE(imported.errors.empty()) << to_string(imported.errors);
  return scenario_document(imported);
}

std::string errors_of(const std::string& more) {
  return to_string(import("python pretrain_gpt.py " + kRequired + more).errors);
}

TEST(MegatronImport, AScriptThatExpandsBeyondMemoryIsRefused) {
  std::string text = "A=xxxxxxxx\n";
  for (int line = 0; line < 35; ++line) text += "A=$A$A\n";
  EXPECT_TRUE(has(to_string(import(text + "python pretrain_gpt.py " + kRequired + "$A\n").errors),
                  "expand to more than 1 MiB"));
}

TEST(MegatronImport, DegreesWhoseProductIsNoIntegerDoNotStopTheProgram) {
  const std::string most = " 1099511627776 ";
  EXPECT_TRUE(has(errors_of("--pipeline-model-parallel-size" + most +
                            "--num-virtual-stages-per-pipeline-rank" + most),
                  "chunks are too many"));
  const ImportedScenario imported =
      import("torchrun --nnodes 1 --nproc-per-node 8 pretrain_gpt.py " + kRequired +
             "--tensor-model-parallel-size" + most + "--pipeline-model-parallel-size" + most +
             "--num-distributed-optimizer-instances 2");
  EXPECT_FALSE(imported.errors.empty());
}

// The form of the scripts in Megatron-LM's examples: variables, arrays, torchrun's own arguments.
constexpr const char* kScript = R"(#!/bin/bash
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS=8
NODES=${NNODES:-4}
CHECKPOINTS=$1
TP=8; PP=2
LAUNCH=(
    --nproc_per_node $GPUS
    --nnodes $NODES
    --master_addr localhost
)
MODEL=(
    --num-layers 96   # GPT-3
    --hidden-size 12288
    --num-attention-heads 96
    --seq-length 2048
    --max-position-embeddings 2048
)
TRAINING=(--micro-batch-size 1 --global-batch-size $((NODES * 48)) --fp16 --clip-grad 1.0
    --lr 6.0e-5 --train-iters 500)
torchrun ${LAUNCH[@]} examples/pretrain_gpt.py \
    ${MODEL[@]} "${TRAINING[@]}" \
    --tensor-model-parallel-size $TP --pipeline-model-parallel-size ${PP} \
    --num-layers-per-virtual-pipeline-stage 12 --recompute-activations \
    --merge-file gpt2-merges.txt --save $CHECKPOINTS --seed 3 --future-kernel
)";

TEST(MegatronImport, ReadsAScriptWithVariablesAndArrays) {
  const ImportedScenario imported = import(kScript);
  ASSERT_TRUE(imported.errors.empty()) << to_string(imported.errors);
  EXPECT_EQ(imported.gpus, 32);
  const SortedJson out = scenario_document(imported);
  EXPECT_EQ(out["model"]["layers"], 96);
  EXPECT_EQ(out["model"]["vocab"], 50257);  // GPT-2's tokenizer
  EXPECT_EQ(out["model"]["ffn"], 4 * 12288);
  EXPECT_EQ(out["training"]["global_batch"], 192);
  EXPECT_EQ(out["training"]["precision"], "fp16");
  EXPECT_EQ(out["training"]["grad_precision"], "fp16");
  EXPECT_EQ(out["layout"]["tp"], 8);
  EXPECT_EQ(out["layout"]["schedule"], "interleaved");
  EXPECT_EQ(out["layout"]["virtual_stages"], 4);  // 96 / 2 / 12
  EXPECT_EQ(out["layout"]["zero"], 0);
  EXPECT_EQ(out["layout"]["recompute"]["modules"], SortedJson({"core_attention"}));
}

TEST(MegatronImport, ReadsWhatTheEnvironmentTellsNccl) {
  const ImportedScenario imported = import(
      "export NCCL_ALGO=Ring,Tree\nNCCL_PROTO='^LL'\nexport NCCL_MIN_CTAS=16\n"
      "export NCCL_NVLS_ENABLE=0 NCCL_DEBUG=INFO\n" +
      std::string(kScript));
  ASSERT_TRUE(imported.errors.empty()) << to_string(imported.errors);
  const SortedJson software = scenario_document(imported)["software"];
  EXPECT_EQ(software, SortedJson({{"NCCL_ALGO", "Ring,Tree"},
                                  {"NCCL_PROTO", "^LL"},
                                  {"NCCL_MIN_CTAS", 16},
                                  {"NCCL_NVLS_ENABLE", 0}}));
  const ImportedScenario unknown = import("export NCCL_ALGO=CollnetChain\n" + std::string(kScript));
  EXPECT_TRUE(scenario_document(unknown)["software"].is_null());
  EXPECT_TRUE(std::ranges::any_of(unknown.warnings, [](const std::string& one) {
    return one.find("NCCL_ALGO=CollnetChain") != std::string::npos;
  }));
}

TEST(MegatronImport, ListsWhatHasNoEffectAndWarnsOfTheRest) {
  const ImportedScenario imported = import(kScript);
  const auto& quiet = imported.without_effect;
  for (const char* flag : {"--lr", "--train-iters", "--save", "--seed"}) {
    EXPECT_NE(std::find(quiet.begin(), quiet.end(), flag), quiet.end()) << flag;
  }
  ASSERT_EQ(imported.warnings.size(), 1u);
  EXPECT_TRUE(has(imported.warnings[0], "--future-kernel"));
}

// The documented layout of DeepSeek-V3: its prediction module has a chunk of its own.
TEST(MegatronImport, ReadsPredictionModulesInAChunkOfTheirOwn) {
  const auto with = [](const std::string& layout) {
    return import("torchrun --nproc_per_node 8 pretrain_gpt.py " + kRequired +
                  "--pipeline-model-parallel-size 2 --mtp-num-layers 1 "
                  "--pipeline-model-parallel-layout \"" +
                  layout + "\"");
  };
  const ImportedScenario apart = with("Et*3|(tt|)*29,m|L");
  EXPECT_TRUE(apart.errors.empty()) << to_string(apart.errors);
  ASSERT_NE(apart.find("layout.mtp_apart"), nullptr);
  EXPECT_EQ(apart.find("layout.mtp_apart")->value, "true");
  EXPECT_EQ(apart.find("layout.virtual_stages")->value, "16");
  EXPECT_EQ(with("Et*3|ttmL").find("layout.mtp_apart"), nullptr);
  EXPECT_FALSE(with("Et|m|t|L").errors.empty());
}

TEST(MegatronImport, ReadsTheEnvironmentOfTheScript) {
  const auto with = [](const std::string& environment) {
    return import(environment + "torchrun --nproc_per_node 8 pretrain_gpt.py " + kRequired +
                  "--tensor-model-parallel-size 8");
  };
  constexpr const char* kKey = "training.async_tensor_backward";
  EXPECT_EQ(with("export CUDA_DEVICE_MAX_CONNECTIONS=1\n").find(kKey), nullptr);
  EXPECT_NE(with("export CUDA_LAUNCH_BLOCKING=1\n").find("training.launch_blocking"), nullptr);
  EXPECT_EQ(with("export NCCL_NET=Socket\n").warnings.size(), 1u);
  EXPECT_EQ(with("").find("training.vboost"), nullptr);
  EXPECT_EQ(with("nvidia-smi boost-slider --vboost 0\n").find("training.vboost"), nullptr);
  EXPECT_NE(with("sudo nvidia-smi boost-slider --vboost 1\n").find("training.vboost"), nullptr);
  const ImportedScenario many = with("export CUDA_DEVICE_MAX_CONNECTIONS=32\n");
  ASSERT_NE(many.find(kKey), nullptr);
  EXPECT_EQ(many.find(kKey)->value, "false");
  const ImportedScenario tuned =
      with("export NCCL_NTHREADS=256 NCCL_DEBUG=INFO\nNCCL_P2P_DISABLE=1 ");
  ASSERT_EQ(tuned.warnings.size(), 1u);
  EXPECT_TRUE(has(tuned.warnings[0], "NCCL_NTHREADS=256, NCCL_P2P_DISABLE=1")) << tuned.warnings[0];
  EXPECT_EQ(tuned.without_effect, std::vector<std::string>{"NCCL_DEBUG"});
}

// Whatever was forecast to run beside kernels is not put behind them in one queue.
TEST(MegatronExport, SetsAsManyHardwareQueuesAsTheForecastSupposes) {
  const auto queues = [](const std::string& cluster, const std::string& layout) {
    const Scenario scenario = stepcast::testing::scenario_from(
        R"({"stepcast": 1, "model": "llama-3.1-8b", "cluster": ")" + cluster +
        R"(", "training": {"global_batch": 64, "framework": "megatron"}, "layout": )" + layout +
        "}");
    return megatron_program(scenario).variables.front();
  };
  EXPECT_EQ(queues("dgx-h100", R"({"tp": 2})"), "export CUDA_DEVICE_MAX_CONNECTIONS=1");
  EXPECT_EQ(queues("dgx-b200", R"({"tp": 2})"), "export CUDA_DEVICE_MAX_CONNECTIONS=32");
  EXPECT_EQ(queues("dgx-h100", R"({"zero": 3})"), "export CUDA_DEVICE_MAX_CONNECTIONS=32");
}

TEST(MegatronImport, AVariableOfTheUsersIsAskedForByName) {
  const std::string text =
      "python pretrain_gpt.py " + kRequired + "--tensor-model-parallel-size $TP";
  const std::string errors = to_string(import(text).errors);
  EXPECT_TRUE(has(errors, "train.sh: --tensor-model-parallel-size")) << errors;
  EXPECT_TRUE(has(errors, "--variable TP=VALUE")) << errors;
  EXPECT_EQ(import(text, {{"TP", "4"}}).integer("layout.tp"), 4);
}

TEST(MegatronImport, AListOfFlagsAndModelArgsOfYamlAreReadToo) {
  EXPECT_EQ(import(kRequired + "--swiglu").integer("model.layers"), 24);
  const ImportedScenario yaml = import(
      "ENV_VARS:\n  A: 1\nMODEL_ARGS:\n  --num-layers: 12\n  --hidden-size: 512\n"
      "  --num-attention-heads: 8\n  --seq-length: 1024\n  --max-position-embeddings: 1024\n"
      "  --micro-batch-size: 4\n  --global-batch-size: 32\n  --vocab-size: 1000\n"
      "  --sequence-parallel: true\n  --swiglu: false\n  --tensor-model-parallel-size: 2\n");
  ASSERT_TRUE(yaml.errors.empty()) << to_string(yaml.errors);
  const SortedJson out = scenario_document(yaml);
  EXPECT_EQ(out["layout"]["sequence_parallel"], true);
  EXPECT_EQ(out["model"]["mlp"], "gelu");
}

TEST(MegatronImport, TheModelsForm) {
  const SortedJson llama = scenario_of(
      "--swiglu --normalization RMSNorm --position-embedding-type rope --disable-bias-linear "
      "--add-qkv-bias --untie-embeddings-and-output-weights --group-query-attention "
      "--num-query-groups 4 --qk-layernorm --attention-dropout 0 --hidden-dropout 0.0");
  EXPECT_EQ(llama["model"]["kv_heads"], 4);
  EXPECT_EQ(llama["model"]["ffn"], 5440);  // 8/3 * 2048 in whole multiples of 64
  EXPECT_EQ(llama["model"]["qkv_bias"], true);
  EXPECT_EQ(llama["model"]["biases"], false);
  EXPECT_EQ(llama["model"]["tied_embeddings"], false);
  EXPECT_EQ(llama["model"]["dropout"], 0.0);
  const SortedJson experts = scenario_of(
      "--num-experts 64 --moe-router-topk 6 --moe-ffn-hidden-size 1408 --moe-layer-freq "
      "'([0]*1+[1]*23)' --moe-token-dispatcher-type alltoall --expert-model-parallel-size 8");
  EXPECT_EQ(experts["model"]["moe"]["dense_layers"], 1);
  EXPECT_EQ(experts["layout"]["ep"], 8);
}

TEST(MegatronImport, WhatRunsBesideExchangesOfTokens) {
  const std::string experts =
      "--num-experts 64 --moe-router-topk 6 --moe-ffn-hidden-size 1408 "
      "--moe-shared-expert-intermediate-size 2816 --expert-model-parallel-size 8 ";
  const SortedJson shared =
      scenario_of(experts + "--moe-token-dispatcher-type alltoall --moe-shared-expert-overlap");
  EXPECT_EQ(shared["layout"]["overlap"]["shared_experts"], true);
  const SortedJson late =
      scenario_of(experts +
                  "--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep "
                  "--moe-hybridep-num-sms 32 --moe-deepep-num-sms 24 "
                  "--overlap-moe-expert-parallel-comm --delay-wgrad-compute");
  EXPECT_EQ(late["layout"]["overlap"]["expert_wgrad"], true);
  EXPECT_EQ(late["model"]["moe"]["dispatcher_sms"], 32);
}

TEST(MegatronImport, BuffersThatAreSizedBeforehandAndTheKernelsThatFillThem) {
  const std::string experts =
      "--num-experts 64 --moe-router-topk 6 --moe-ffn-hidden-size 1408 --swiglu "
      "--untie-embeddings-and-output-weights --expert-model-parallel-size 8 --bf16 "
      "--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep "
      "--moe-expert-rank-capacity-factor 1.5 --moe-paged-stash --use-transformer-engine-op-fuser ";
  const SortedJson blocks = scenario_of(experts +
                                        "--fp8-format e4m3 --fp8-recipe mxfp8 --fp8-output-proj "
                                        "--activation-func-fp8-input-store "
                                        "--moe-paged-stash-buffer-size-factor-cuda -1.25");
  EXPECT_EQ(blocks["model"]["moe"]["rank_capacity_factor"], 1.5);
  EXPECT_EQ(blocks["model"]["moe"]["stash_factor"], 1.25);
  EXPECT_EQ(blocks["model"]["moe"]["fused_mlp"], true);
  EXPECT_EQ(blocks["training"]["fp8_head"], true);
  EXPECT_EQ(blocks["training"]["fp8_activation_input"], true);
  // In 16 bits nothing is fused, and the stash has Megatron's own size.
  const SortedJson wide = scenario_of(experts);
  EXPECT_FALSE(wide["model"]["moe"].contains("fused_mlp"));
  EXPECT_EQ(wide["model"]["moe"]["stash_factor"], 1.1);
}

TEST(MegatronImport, RecomputeAndOverlap) {
  EXPECT_EQ(scenario_of("--recompute-granularity full --recompute-method block "
                        "--recompute-num-layers 3")["layout"]["recompute"],
            SortedJson({{"mode", "full"}, {"layers", 3}}));
  EXPECT_EQ(scenario_of("--recompute-granularity selective --recompute-modules mlp layernorm")
                ["layout"]["recompute"]["modules"],
            SortedJson({"mlp", "layernorm"}));
  const SortedJson overlap = scenario_of(
      "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather "
      "--ddp-bucket-size 1000000 --use-tp-pp-dp-mapping");
  EXPECT_EQ(overlap["layout"]["overlap"]["param_gather"], true);
  EXPECT_EQ(overlap["training"]["gather_bucket_elements"], 1000000);
  EXPECT_EQ(overlap["layout"]["order"], "tp-cp-ep-pp-dp");
}

TEST(MegatronImport, PipelinesOfUnequalStages) {
  EXPECT_EQ(scenario_of("--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout "
                        "'Et*5|t*7|t*7|t*5L'")["layout"]["stage_layers"],
            SortedJson({5, 7, 7, 5}));
  EXPECT_EQ(scenario_of("--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 4 "
                        "--decoder-last-pipeline-num-layers 6")["layout"]["stage_layers"],
            SortedJson({4, 7, 7, 6}));
}

TEST(MegatronImport, ItsOwnModulesHaveUnfusedAttentionUnlessTheyAreToldOtherwise) {
  const auto attention = [](const std::string& flags) {
    return scenario_of(flags)["training"]["attention"].get<std::string>();
  };
  EXPECT_EQ(attention("--transformer-impl local"), "unfused");
  EXPECT_EQ(attention("--transformer-impl local --use-flash-attn"), "flash");
  EXPECT_EQ(attention("--transformer-impl transformer_engine"), "flash");
  EXPECT_EQ(attention("--transformer-impl transformer_engine --attention-backend unfused"),
            "unfused");
}

TEST(MegatronImport, WhatMegatronRefusesIsRefusedByItsFlag) {
  EXPECT_TRUE(has(errors_of("--recompute-granularity full"), "--recompute-method"));
  EXPECT_TRUE(has(errors_of("--pipeline-model-parallel-size 5"), "--num-layers"));
  EXPECT_TRUE(has(errors_of("--pipeline-model-parallel-size 4 "
                            "--num-layers-per-virtual-pipeline-stage 5"),
                  "--num-layers-per-virtual-pipeline-stage"));
  EXPECT_TRUE(has(errors_of("--fp16"), "--fp16"));
  EXPECT_TRUE(has(errors_of("--optimizer-cpu-offload"), "--use-precision-aware-optimizer"));
  EXPECT_TRUE(has(errors_of("--attention-backend flesh"), "did you mean 'flash'"));
  EXPECT_TRUE(has(errors_of("--optimizer lion"), "not supported yet"));
  EXPECT_TRUE(has(to_string(import("echo nothing").errors), "holds no command"));
  EXPECT_TRUE(has(to_string(import("run --num-layers x").errors), "'x' is no count"));
}

// Without chunks there is no group.
TEST(MegatronImport, ReadsGroupsOfMicroBatches) {
  const std::string group =
      "--pipeline-model-parallel-size 2 --microbatch-group-size-per-virtual-pipeline-stage 5 ";
  const SortedJson out = scenario_of(group + "--num-virtual-stages-per-pipeline-rank 2");
  EXPECT_EQ(out["layout"]["micro_batch_group"], 5);
  EXPECT_FALSE(scenario_of(group)["layout"].contains("micro_batch_group"));
}

TEST(MegatronImport, NarrowProductsAndOffloadedStates) {
  const SortedJson out = scenario_of(
      "--fp4-format e2m1 --fp4-recipe nvfp4 --first-last-layers-bf16 "
      "--num-layers-at-end-in-bf16 14 --optimizer sgd --use-precision-aware-optimizer "
      "--optimizer-cpu-offload --optimizer-offload-fraction 0.25 --overlap-cpu-optimizer-d2h-h2d");
  EXPECT_EQ(out["training"]["precision"], "fp4");
  EXPECT_EQ(out["training"]["first_layers_16_bits"], 1);
  EXPECT_EQ(out["training"]["last_layers_16_bits"], 14);
  EXPECT_EQ(out["training"]["optimizer"], "sgd");
  EXPECT_EQ(out["layout"]["offload"]["optimizer"], 0.25);
  EXPECT_EQ(out["layout"]["overlap"]["offload"], true);
}

TEST(MegatronImport, SequenceParallelWithoutTensorParallelIsSaidToBeOff) {
  const ImportedScenario imported = import("python p.py " + kRequired + "--sequence-parallel");
  ASSERT_EQ(imported.warnings.size(), 1u);
  EXPECT_TRUE(has(imported.warnings[0], "--sequence-parallel"));
}

TEST(MegatronRules, ShortInterleavedPipelinesNeedOverlap) {
  const Scenario scenario = testing::scenario_from(
      R"({"stepcast": 1, "model": "gpt3-13b", "cluster": "dgx-a100-80gx2",
          "training": {"global_batch": 64},
          "layout": {"pp": 2, "schedule": "interleaved", "virtual_stages": 2,
                     "overlap": {"pp": false}}})");
  const Errors errors = check_megatron(scenario);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].path, "layout.overlap.pp");
}

}  // namespace
}  // namespace stepcast
