// SPDX-License-Identifier: Apache-2.0
// Logs become scenarios and suites, by the program as a user runs it.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/each.h"
#include "logs/samples.h"
#include "program.h"

namespace stepcast::testing {
namespace {

using nlohmann::json;

// Arguments of core 0.12, as it prints them: resolved, in the order of the alphabet, with those
// that nobody set.
const std::vector<std::pair<std::string, std::string>> kArguments = {
    {"add_bias_linear", "False"},
    {"attention_backend", "AttnBackend.auto"},
    {"attention_dropout", "0.0"},
    {"bf16", "True"},
    {"bias_swiglu_fusion", "True"},
    {"clip_grad", "1.0"},
    {"context_parallel_size", "1"},
    {"cp_comm_type", "['p2p']"},
    {"data_parallel_sharding_strategy", "no_shard"},
    {"data_parallel_size", "8"},
    {"exp_avg_dtype", "torch.float32"},
    {"expert_model_parallel_size", "1"},
    {"expert_tensor_parallel_size", "1"},
    {"ffn_hidden_size", "14336"},
    {"fp16", "False"},
    {"fp8", "None"},
    {"fp8_recipe", "delayed"},
    {"global_batch_size", "128"},
    {"gradient_accumulation_fusion", "True"},
    {"group_query_attention", "True"},
    {"hidden_dropout", "0.0"},
    {"hidden_size", "4096"},
    {"kv_channels", "128"},
    {"kv_lora_rank", "32"},
    {"make_vocab_size_divisible_by", "128"},
    {"micro_batch_size", "1"},
    {"moe_router_topk", "2"},
    {"multi_latent_attention", "False"},
    {"norm_epsilon", "1e-05"},
    {"normalization", "RMSNorm"},
    {"num_attention_heads", "32"},
    {"num_experts", "None"},
    {"num_layers", "32"},
    {"num_query_groups", "8"},
    {"optimizer", "adam"},
    {"overlap_grad_reduce", "True"},
    {"overlap_p2p_comm", "False"},
    {"overlap_param_gather", "True"},
    {"padded_vocab_size", "None"},
    {"pipeline_model_parallel_size", "1"},
    {"position_embedding_type", "rope"},
    {"recompute_granularity", "None"},
    {"recompute_modules", "['core_attn']"},
    {"seq_length", "4096"},
    {"sequence_parallel", "True"},
    {"swiglu", "True"},
    {"tensor_model_parallel_size", "2"},
    {"tokenizer_type", "HuggingFaceTokenizer"},
    {"untie_embeddings_and_output_weights", "True"},
    {"use_distributed_optimizer", "True"},
    {"virtual_pipeline_model_parallel_size", "None"},
    {"vocab_size", "None"},
    {"world_size", "16"}};

std::string arguments(const std::string& tp = "2") {
  std::string out = "------------------------ arguments ------------------------\n";
  for (const auto& [name, value] : kArguments) {
    const std::string& stated = name == "tensor_model_parallel_size" ? tp : value;
    out += "  " + name + " " + std::string(48 - name.size(), '.') + " " + stated + "\n";
  }
  return out + "-------------------- end of arguments ---------------------\n";
}

std::string megatron_log() {
  return arguments() + " > padded vocab (size: 128256) with 0 dummy tokens (new size: 128256)\n" +
         samples::steps(
             " iteration {}/ 100 | elapsed time per iteration (ms): 3600.5 | global batch "
             "size:   128 | lm loss: 8.6E+00 |\n",
             1, 40) +
         samples::kMegatronMemory;
}

TEST(ImportLog, TheArgumentsThatMegatronPrintsAreTheScenario) {
  const Folder folder;
  write_file(folder / "run.log", megatron_log());
  const auto found = run({"import", folder / "run.log", "--cluster", "dgx-h100"});
  ASSERT_EQ(found.code, 0) << found.error;
  const json scenario = found.json();
  EXPECT_EQ(scenario["cluster"], (json{{"base", "dgx-h100"}, {"gpus", 16}}));
  EXPECT_EQ(scenario["training"]["global_batch"], 128);
  EXPECT_EQ(scenario["training"]["sequence_length"], 4096);
  EXPECT_EQ(scenario["training"]["precision"], "bf16");
  EXPECT_EQ(scenario["layout"]["tp"], 2);
  EXPECT_EQ(scenario["layout"]["micro_batch"], 1);
  EXPECT_EQ(scenario["layout"]["zero"], 1);
  EXPECT_EQ(scenario["layout"]["overlap"], (json{{"grad_reduce", true}, {"param_gather", true}}));
  EXPECT_FALSE(scenario["layout"].contains("recompute"));
  EXPECT_EQ(scenario["model"]["layers"], 32);
  EXPECT_EQ(scenario["model"]["kv_heads"], 8);
  EXPECT_EQ(scenario["model"]["vocab"], 128256);
  EXPECT_EQ(scenario["model"]["biases"], false);
  EXPECT_FALSE(scenario["model"].contains("mla"));
  EXPECT_FALSE(scenario["model"].contains("moe"));
  EXPECT_FALSE(has(found.error, "warning")) << found.error;
  EXPECT_TRUE(has(found.error, "3.601 s a step, the median of 35 steps")) << found.error;
}

TEST(ImportLog, ALogThatBreaksOffBeforeItsFirstStepIsAScenarioAllTheSame) {
  const Folder folder;
  write_file(folder / "run.log", arguments());
  const auto found =
      run({"import", folder / "run.log", "--cluster", "dgx-h100", "--vocab", "128256"});
  const auto other =
      run({"import", folder / "run.log", "--cluster", "dgx-h100", "--set", "model.vocab=128256"});
  EXPECT_EQ(found.code, 2);
  ASSERT_EQ(other.code, 0) << other.error;
  EXPECT_EQ(other.json()["layout"]["tp"], 2);
  const auto suite =
      run({"import", folder / "run.log", "--cluster", "dgx-h100", "--suite", folder / "runs.json"});
  expect_refused(suite);
  EXPECT_TRUE(has(suite.error, "prints settings in line 1, and no step after them"));
}

TEST(ImportLog, AFolderBecomesASuiteThatTheCheckReads) {
  const Folder folder;
  const std::string logs = folder / "logs";
  std::filesystem::create_directory(logs);
  write_file(logs + "/a.log", megatron_log());
  write_file(logs + "/b.out",
             samples::kTorchtitanStart + samples::steps(samples::kTorchtitan2025, 1, 16));
  write_file(logs + "/notes.txt", "nothing of a run\n");
  write_file(logs + "/c.log.gz", "\x1f\x8b\x08");
  write_file(logs + "/two.log", megatron_log() + arguments("4"));
  std::filesystem::create_directory(logs + "/older");
  const std::string suite = folder / "runs.json";
  const std::vector<std::string> words = {"import",  logs,  "--cluster", "dgx-h100",
                                          "--suite", suite, "--model",   "llama-3.1-8b"};
  const auto made = run(words);
  ASSERT_EQ(made.code, 0) << made.error;
  for (const char* left_out : {"notes.txt: holds no step", "c.log.gz: is packed by gzip",
                               "older: is a folder in a folder", "two.log: holds two runs"}) {
    EXPECT_NE(made.error.find(left_out), std::string::npos) << left_out << '\n' << made.error;
  }
  const json cases = json::parse(read_file(suite))["cases"];
  ASSERT_EQ(cases.size(), 2u);
  EXPECT_EQ(cases[0]["id"], "a");
  EXPECT_EQ(cases[0]["tags"], json{"megatron-lm"});
  EXPECT_EQ(cases[0]["measured"]["step_time_s"], 3.6005);
  // 54250.98583984375 MiB, of the rank with the most.
  EXPECT_EQ(cases[0]["measured"]["peak_memory_bytes"], 56886281728.0);
  EXPECT_FALSE(cases[0].contains("convention"));
  EXPECT_EQ(cases[1]["id"], "b");
  EXPECT_EQ(cases[1]["measured"]["tokens_per_s_per_gpu"], 193831.0);
  EXPECT_EQ(cases[1]["convention"], (json{{"memory", "reserved"}}));
  EXPECT_EQ(cases[1]["scenario"]["layout"]["tp"], 2);
  EXPECT_EQ(cases[1]["scenario"]["layout"]["shard_group"], 4);
  EXPECT_EQ(cases[1]["scenario"]["cluster"]["gpus"], 16);
  EXPECT_EQ(cases[1]["scenario"]["training"]["global_batch"], 16);
  EXPECT_EQ(cases[1]["scenario"]["training"]["sequence_length"], 8192);
  const auto checked = run({"check", suite, "--format", "json"});
  ASSERT_EQ(checked.code, 0) << checked.error;
  EXPECT_EQ(checked.json()["summary"]["all"]["count"], 2);
  EXPECT_EQ(checked.json()["summary"]["all"]["failed"], 0);
}

TEST(ImportLog, ASuiteIsExtendedAndACaseOfTheSameNameReplaced) {
  const Folder folder;
  write_file(folder / "a.log", megatron_log());
  write_file(folder / "b.log", megatron_log());
  const std::string suite = folder / "runs.json";
  const auto import = [&](const std::string& log) {
    return run({"import", folder / log, "--cluster", "dgx-h100", "--suite", suite});
  };
  ASSERT_EQ(import("a.log").code, 0);
  json first = json::parse(read_file(suite));
  first["tolerance"] = {{"step_time", 0.5}};
  first["cases"][0]["notes"] = "with the new network";
  write_file(suite, first.dump());
  ASSERT_EQ(import("b.log").code, 0);
  const json second = json::parse(read_file(suite));
  EXPECT_EQ(second["tolerance"], first["tolerance"]);
  ASSERT_EQ(second["cases"].size(), 2u);
  EXPECT_EQ(second["cases"][0], first["cases"][0]);
  ASSERT_EQ(import("a.log").code, 0);
  const json third = json::parse(read_file(suite));
  ASSERT_EQ(third["cases"].size(), 2u);
  EXPECT_EQ(third["cases"][0]["notes"], "with the new network");  // people wrote it
  EXPECT_EQ(third["cases"][0]["measured"], first["cases"][0]["measured"]);
  EXPECT_EQ(third["cases"][1], second["cases"][1]);
  write_file(suite, "{\"stepcast_suite\": 1, \"cases\": 3}");
  expect_refused(import("a.log"));
  EXPECT_EQ(read_file(suite), "{\"stepcast_suite\": 1, \"cases\": 3}");
}

// The global batch of the log holds over that of its settings, which may be of another run.
TEST(ImportLog, ALogWithoutSettingsTakesTheFileOfItsNameBesideIt) {
  const Folder folder;
  write_file(folder / "run.log", samples::steps(samples::kMegatron2021, 1, 16));
  write_file(folder / "run.sh",
             "torchrun --nnodes 8 --nproc-per-node 8 pretrain_gpt.py --num-layers 24 --hidden-size "
             "2048 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 4 "
             "--global-batch-size 512 --bf16 --vocab-size 50257\n");
  const auto beside = run({"import", folder / "run.log", "--cluster", "dgx-h100"});
  ASSERT_EQ(beside.code, 0) << beside.error;
  EXPECT_EQ(beside.json()["cluster"]["gpus"], 64);
  EXPECT_EQ(beside.json()["training"]["global_batch"], 1024);
  EXPECT_TRUE(has(beside.error, "training.global_batch is 512 in the settings and 1024 in the log"))
      << beside.error;
  std::filesystem::rename(folder / "run.sh", folder / "other.sh");
  EXPECT_EQ(
      run({"import", folder / "run.log", "--cluster", "dgx-h100", "--config", folder / "other.sh"})
          .json(),
      beside.json());
  const auto none = run({"import", folder / "run.log", "--cluster", "dgx-h100"});
  expect_refused(none);
  EXPECT_TRUE(has(none.error, "--model NAME|PATH")) << none.error;
}

TEST(ImportLog, WhatIsWrongIsSaidAndNothingIsWritten) {
  const Folder folder;
  write_file(folder / "run.log", megatron_log());
  write_file(folder / "short.log", arguments() + samples::steps(samples::kMegatron2019, 1, 4));
  write_file(folder / "two.log", megatron_log() + arguments("4"));
  write_file(folder / "junk.log", std::string("\x1f\x8b\x08\0\0\xff junk", 12));
  struct Case {
    std::vector<std::string> words;
    std::string said;
  };
  const std::string suite = folder / "runs.json";
  const std::vector<Case> cases = {
      {{folder / "run.log"}, "--cluster"},
      {{folder / "run.log", folder / "run.log", "--cluster", "dgx-h100"},
       "several logs make a suite"},
      {{folder / "short.log", "--cluster", "dgx-h100"}, "0 steps are left of 4 lines"},
      {{folder / "two.log", "--cluster", "dgx-h100"}, "differ in"},
      {{folder / "junk.log", "--from", "log", "--cluster", "dgx-h100"}, "is packed by gzip"},
      {{folder / "none.log", "--cluster", "dgx-h100", "--suite", suite}, "cannot be read"},
      {{folder / "run.log", folder / "short.log", "--cluster", "dgx-h100", "--suite", suite},
       "0 steps are left"},
      {{folder / "run.log", "--cluster", "dgx-h100x1"}, "starts 16 GPUs, and the cluster has 8"},
      {{folder / "run.log", "--cluster", "dgx-h100", "--suite", folder / "run.log"}, "--suite"}};
  for (const Case& one : each_of(cases)) {
    std::vector<std::string> words = {"import"};
    words.insert(words.end(), one.words.begin(), one.words.end());
    const auto found = run(words);
    expect_refused(found);
    EXPECT_TRUE(has(found.error, one.said)) << found.error;
    EXPECT_EQ(folder.files(), 4u);
  }
}

}  // namespace
}  // namespace stepcast::testing
