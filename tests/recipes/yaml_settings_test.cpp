// SPDX-License-Identifier: Apache-2.0
// Public recipes of other tools (tests/data/recipes/public, each with its source in its first line)
// become the scenarios that they mean.
#include "recipes/yaml_settings.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "cluster/cluster.h"
#include "core/each.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "places.h"
#include "predict/prediction.h"
#include "recipes/import.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

const std::string kFolder = source_folder() + "/tests/data/recipes/public/";

std::string text_of_file(const std::string& path) {
  std::ifstream stream(path);
  std::ostringstream out;
  out << stream.rdbuf();
  return out.str();
}

struct Recipe {
  const char* file;
  const char* format;
  std::int64_t gpus;  // of the cluster; 0: the file says it
  std::map<std::string, std::string> expected;
};

// The values are the recipes' own; a global batch of a device's batch is micro-batch x accumulation
// x GPUs.
const std::vector<Recipe> kRecipes = {
    {"axolotl_fft_8b_fsdp",
     "axolotl",
     8,
     {{"model", "\"NousResearch/Meta-Llama-3.1-8B\""},
      {"training.global_batch", "64"},
      {"layout.micro_batch", "2"},
      {"training.sequence_length", "4096"},
      {"layout.zero", "3"},
      {"training.loss_chunks", "32"},
      {"layout.recompute", "\"full\""},
      {"layout.offload.parameters", "1.0"},
      {"training.precision", "\"bf16\""}}},
    {"axolotl_qlora_fsdp_70b",
     "axolotl",
     2,
     {{"training.mode", "\"qlora\""},
      {"training.lora_rank", "8"},
      {"training.lora_dropout", "0.05"},
      {"training.global_batch", "8"},
      {"training.sequence_length", "512"},
      {"layout.zero", "3"}}},
    {"torchtune_llama31_70b_lora",
     "torchtune",
     8,
     {{"model", "\"llama-3.1-70b\""},
      {"training.mode", "\"lora\""},
      {"training.lora_rank", "16"},
      {"training.lora_targets", "[\"attention_out\",\"mlp\",\"qkv\"]"},
      {"training.framework", "\"fsdp\""},
      {"training.fused_cross_entropy", "true"},
      {"training.global_batch", "16"},
      {"layout.micro_batch", "2"},
      {"layout.zero", "3"},
      {"layout.recompute", "\"full\""}}},
    {"torchtune_llama3_8b_qdora",
     "torchtune",
     1,
     {{"model", "\"llama-3-8b\""},
      {"training.mode", "\"qlora\""},
      {"training.lora_rank", "8"},
      {"training.global_batch", "16"},
      {"layout.micro_batch", "2"},
      {"layout.zero", "0"}}},
    {"torchtune_llama32_3b_full",
     "torchtune",
     1,
     {{"model", "\"llama-3.2-3b\""},
      {"training.master_precision", "\"bf16\""},
      {"training.optimizer", "\"adamw_8bit\""},
      {"training.global_batch", "4"},
      {"layout.zero", "0"}}},
    {"axolotl_lora_8b",
     "axolotl",
     1,
     {{"training.mode", "\"lora\""},
      {"training.lora_rank", "32"},
      {"training.framework", "\"fsdp\""},
      {"layout.zero", "0"},
      {"training.global_batch", "8"}}},
    {"axolotl_fft_4b_fsdp_tp",
     "axolotl",
     4,
     {{"training.global_batch", "16"}, {"layout.zero", "3"}, {"layout.micro_batch", "4"}}},
    {"axolotl_3b_fp8_fsdp2",
     "axolotl",
     8,
     {{"training.precision", "\"fp8\""},
      {"training.fp8_params", "true"},
      {"training.compile", "true"},
      {"training.global_batch", "128"},
      {"layout.recompute", "\"full\""}}},
    {"primus_llama31_70b_bf16",
     "primus",
     8,
     {{"model", "\"llama3.1-70B\""},
      {"training.global_batch", "8"},
      {"training.sequence_length", "8192"},
      {"training.framework", "\"fsdp\""},
      {"layout.zero", "3"}}},
    {"primus_deepseek_v2_lite_bf16",
     "primus",
     8,
     {{"model", "\"deepseek-v2-lite\""},
      {"training.global_batch", "640"},
      {"training.sequence_length", "4096"},
      {"layout.micro_batch", "4"},
      {"layout.zero", "1"},
      {"layout.ep", "8"}}},
    {"primus_qwen25_7b_fp8",
     "primus",
     8,
     {{"model", "\"qwen2.5-7B\""},
      {"training.precision", "\"fp8\""},
      {"layout.micro_batch", "10"},
      {"training.sequence_length", "2048"}}},
    {"automodel_qwen3_moe_30b",
     "automodel",
     8,
     {{"model", "\"Qwen/Qwen3-30B-A3B\""},
      {"training.global_batch", "512"},
      {"layout.micro_batch", "4"},
      {"layout.ep", "8"},
      {"layout.zero", "3"},
      {"layout.recompute", "\"full\""},
      {"training.early_stop", "true"},
      {"training.master_precision", "\"bf16\""},
      {"training.sequence_length", "4096"}}},
    {"automodel_llama33_70b_peft_pp",
     "automodel",
     8,
     {{"training.mode", "\"lora\""},
      {"training.lora_rank", "16"},
      {"layout.tp", "4"},
      {"layout.pp", "2"},
      {"layout.micro_batch", "1"},
      {"layout.schedule", "\"interleaved\""},
      {"layout.recompute", "\"full\""},
      {"training.global_batch", "32"}}},
    {"automodel_deepseek_v3",
     "automodel",
     256,
     {{"model", "\"deepseek-ai/DeepSeek-V3\""},
      {"layout.pp", "4"},
      {"layout.ep", "64"},
      {"layout.micro_batch", "1"},
      {"layout.zero", "2"}}},
    {"llm_foundry_mpt_7b",
     "llm-foundry",
     0,
     {{"training.global_batch", "1024"},
      {"layout.micro_batch", "8"},
      {"layout.zero", "3"},
      {"layout.shard_group", "4"},
      {"layout.recompute", "\"full\""},
      {"training.reduce_precision", "\"bf16\""},
      {"training.sequence_length", "2048"}}},
    {"llm_foundry_llama3_8b_sft",
     "llm-foundry",
     6,
     {{"model", "\"meta-llama/Meta-Llama-3-8B\""},
      {"training.sequence_length", "2048"},
      {"training.global_batch", "48"}}},
    {"llm_foundry_mpt_1b_fsdp2",
     "llm-foundry",
     2,
     {{"training.global_batch", "8"},
      {"layout.micro_batch", "4"},
      {"layout.recompute", "\"none\""}}},
    {"trl_smollm_sft",
     "trl",
     8,
     {{"training.global_batch", "128"},
      {"training.sequence_length", "2048"},
      {"layout.recompute", "\"full\""}}},
    {"trl_mistral_cai_sft",
     "trl",
     8,
     {{"model", "\"mistralai/Mistral-7B-v0.1\""},
      {"training.global_batch", "256"},
      {"layout.micro_batch", "8"}}},
    {"accelerate_fsdp2",
     "accelerate",
     0,
     {{"training.framework", "\"fsdp\""},
      {"layout.zero", "3"},
      {"training.precision", "\"bf16\""}}},
    {"accelerate_deepspeed_zero3",
     "accelerate",
     0,
     {{"training.framework", "\"deepspeed\""},
      {"layout.zero", "3"},
      {"training.precision", "\"fp16\""}}},
    {"accelerate_context_parallel", "accelerate", 0, {{"layout.cp", "2"}, {"layout.zero", "3"}}},
    {"accelerate_fsdp_qlora",
     "accelerate",
     0,
     {{"layout.zero", "3"}, {"layout.offload.parameters", "1.0"}}}};

ImportedScenario import_of(const std::string& text, std::int64_t gpus = 0) {
  ImportInput input;
  input.text = text;
  input.file = "recipe.yaml";
  if (gpus > 0) input.gpus = gpus;
  input.models_folder = testing::source_folders().models;
  return import_text(detect_format(text), input);
}

class PublicRecipes : public ::testing::TestWithParam<Recipe> {};

TEST_P(PublicRecipes, BecomeTheScenariosThatTheyMean) {
  const Recipe& recipe = GetParam();
  const std::string text = text_of_file(kFolder + recipe.file + ".yaml");
  ASSERT_EQ(detect_format(text), recipe.format);
  const ImportedScenario imported = import_of(text, recipe.gpus);
  EXPECT_TRUE(imported.errors.empty()) << to_string(imported.errors);
  for (const auto& [path, value] : each_of(recipe.expected)) {
    const Setting* setting = imported.find(path);
    ASSERT_NE(setting, nullptr) << path;
    EXPECT_EQ(setting->value, value) << path;
  }
}

// Nothing is dropped in silence: every key at the top has become a setting, or is listed.
TEST_P(PublicRecipes, HaveNoKeyThatNobodyTells) {
  const Recipe& recipe = GetParam();
  const std::string text = text_of_file(kFolder + recipe.file + ".yaml");
  ImportInput input;
  input.text = text + "\nnobody_knows_this_key: 7\n";
  input.file = "recipe.yaml";
  input.gpus = recipe.gpus > 0 ? std::optional(recipe.gpus) : std::nullopt;
  const ImportedScenario imported = import_text(recipe.format, input);
  const bool is_nested = std::string(recipe.format) == "primus";
  const auto tells = [](const std::vector<std::string>& all) {
    return std::ranges::any_of(all, [](const std::string& one) {
      return one.find("nobody_knows_this_key") != std::string::npos;
    });
  };
  EXPECT_EQ(tells(imported.warnings), !is_nested) << recipe.file;
}

INSTANTIATE_TEST_SUITE_P(Yaml, PublicRecipes, ::testing::ValuesIn(kRecipes),
                         [](const auto& one) { return std::string(one.param.file); });

// A recipe is forecast where its model ships, and nothing of it is unsupported yet.
TEST(PublicRecipes, AreForecast) {
  AtLeast forecast(10);
  for (const Recipe& recipe : each_of(kRecipes)) {
    const std::string text = text_of_file(kFolder + recipe.file + ".yaml");
    ImportedScenario imported = import_of(text, recipe.gpus);
    const bool has_model = imported.find("model") != nullptr;
    if (!has_model) {
      imported.set_word("model", "llama-3.1-8b", "");
      imported.set_integer("training.global_batch", 32, "");
      imported.set_integer("training.sequence_length", 2048, "");
    }
    imported.set_json(
        "cluster",
        "{\"base\": \"dgx-h100\", \"gpus\": " + std::to_string(imported.gpus.value_or(8)) + "}",
        "");
    auto document = JsonDocument::from(scenario_document(imported), "recipe");
    ASSERT_NE(document, nullptr) << recipe.file;
    const auto scenario = read_scenario(*document, testing::source_folders());
    if (!scenario) continue;
    const auto prediction = predict(*scenario, testing::source_folders());
    ASSERT_TRUE(prediction.has_value()) << recipe.file << to_string(prediction.error());
    EXPECT_GT(prediction->step_time.value(), 0) << recipe.file;
    ++forecast;
  }
}

TEST(PublicRecipes, AreAllThatLieThere) {
  std::set<std::string> there, tested;
  for (const auto& file : std::filesystem::directory_iterator(kFolder)) {
    there.insert(file.path().stem().string());
    const std::string first = text_of_file(file.path().string()).substr(0, 200);
    EXPECT_NE(first.find(" at "), std::string::npos) << file.path();
  }
  for (const Recipe& recipe : each_of(kRecipes)) tested.insert(recipe.file);
  EXPECT_EQ(there, tested);
  EXPECT_GE(there.size(), 20u);
}

TEST(YamlSettings, AskForTheNumberOfGpusThatABatchOfDevicesNeeds) {
  const ImportedScenario out = import_of("base_model: a\nmicro_batch_size: 2\nsequence_len: 512\n");
  ASSERT_EQ(out.errors.size(), 1u);
  EXPECT_NE(to_string(out.errors).find("micro_batch_size"), std::string::npos);
  EXPECT_NE(to_string(out.errors).find("--cluster"), std::string::npos);
}

TEST(YamlSettings, RanksThatShareABatchCountOnce) {
  const ImportedScenario out = import_of(
      "base_model: a\nmicro_batch_size: 2\ngradient_accumulation_steps: 3\n"
      "tensor_parallel_size: 2\ncontext_parallel_size: 2\n",
      16);
  EXPECT_EQ(out.integer("training.global_batch"), 2 * 3 * 16 / (2 * 2));
}

TEST(YamlSettings, RefuseValuesOfOtherTypesByTheirKey) {
  const ImportedScenario out =
      import_of("step_scheduler:\n  global_batch_size: many\nmodel: {}\n", 8);
  EXPECT_NE(to_string(out.errors).find("step_scheduler.global_batch_size"), std::string::npos);
}

TEST(YamlSettings, AskForAMicroBatchThatARunFoundOut) {
  const ImportedScenario out = import_of(
      "global_train_batch_size: 8\ndevice_train_microbatch_size: auto\nmodel: {name: hf}\n", 8);
  EXPECT_NE(to_string(out.errors).find("--micro-batch"), std::string::npos);
}

TEST(YamlSettings, RefuseWhatUnfoldsToTooMuchOrNestsTooDeep) {
  std::string bomb = "base_model: &a [1,1,1,1,1,1,1,1,1,1]\n";
  for (char c = 'b'; c < 'j'; ++c) {
    const std::string before = std::string("*") + static_cast<char>(c - 1);
    bomb += std::string("k") + c + ": &" + c + " [" + before;
    for (int i = 0; i < 9; ++i) bomb += "," + before;
    bomb += "]\n";
  }
  ImportInput input;
  input.text = bomb + "micro_batch_size: 1\n";
  EXPECT_NE(to_string(import_text("axolotl", input).errors).find("too many values"),
            std::string::npos);
  input.text = "base_model: " + std::string(100, '[') + std::string(100, ']') + "\n";
  EXPECT_FALSE(import_text("axolotl", input).errors.empty());
  input.text = "base_model: [1\n";
  EXPECT_NE(to_string(import_text("axolotl", input).errors).find("is not YAML"), std::string::npos);
}

// ASTRA-sim counts GB of 2^30 bytes, and a switch is two links away from everybody.
TEST(AstraNetworkImport, BecomesNodesAndTheirNetwork) {
  ImportInput input;
  input.file = "network.yml";
  input.text =
      "topology: [ Switch, Switch, Switch ]\nnpus_count: [ 8, 16, 4 ]\n"
      "bandwidth: [ 400.0, 50.0, 25.0 ]  # GB/s\nlatency: [ 500, 1000, 1500 ]  # ns\n";
  EXPECT_EQ(detect_format(input.text), "astra-sim");
  const ImportedScenario out = import_text("astra-sim", input);
  EXPECT_TRUE(out.errors.empty()) << to_string(out.errors);
  SortedJson scenario = scenario_document(out);
  SortedJson& cluster = scenario["cluster"];
  cluster["accelerator"] = "h100-sxm5-80g";
  cluster["network"] = "infiniband";
  cluster["pcie"] = "63 GB/s";
  const auto document = JsonDocument::from(scenario, "");
  ObjectReader reader(document->root());
  const Cluster read = read_cluster(*reader.required("cluster"), source_folder() + "/topologies");
  EXPECT_TRUE(document->ok()) << to_string(document->errors());
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  EXPECT_EQ(read.gpus(), 8 * 16 * 4);
  EXPECT_EQ(read.spec.scale_up, ScaleUp::kNvSwitch);
  EXPECT_DOUBLE_EQ(read.spec.scale_up_bandwidth.value(), 400 * kGiB);
  EXPECT_DOUBLE_EQ(read.spec.scale_up_latency.value(), 1e-6);
  EXPECT_DOUBLE_EQ(read.spec.nic_bandwidth.value(), 50 * kGiB);
  EXPECT_DOUBLE_EQ(read.spec.network_latency.value(), 2e-6);
  EXPECT_EQ(read.spec.nodes_per_leaf_group, 16);
  EXPECT_DOUBLE_EQ(read.spec.oversubscription, 2);
}

TEST(AstraNetworkImport, RefusesWhatIsNoCluster) {
  const auto errors = [](const std::string& text) {
    ImportInput input;
    input.file = "network.yml";
    input.text = text;
    return to_string(import_text("astra-sim", input).errors);
  };
  const auto network = [](const char* forms, const char* counts, const char* rates) {
    return std::string("topology: ") + forms + "\nnpus_count: " + counts + "\nbandwidth: " + rates +
           "\nlatency: " + rates + "\n";
  };
  EXPECT_NE(errors(network("[Ring]", "[8]", "[1]")).find("topology[0]"), std::string::npos);
  EXPECT_NE(errors(network("[Switch, Ring]", "[8, 4]", "[2, 1]")).find("topology[1]"),
            std::string::npos);
  EXPECT_NE(errors(network("[Switch, Switch]", "[8]", "[2, 1]")).find("2 dimensions"),
            std::string::npos);
  EXPECT_NE(errors(network("[Switch]", "[0]", "[1]")).find("topology[0]"), std::string::npos);
}

TEST(TorchtitanImport, ReadsBatchesInTokens) {
  const ImportedScenario out = import_of(
      R"({"model": {"name": "llama3", "flavor": "8B"}, "training": {"max_context_length": 4096,
          "num_tokens_per_microbatch_per_dp_rank": 8192, "num_tokens_per_train_step": 524288},
          "parallelism": {"data_parallel_shard_degree": -1}})",
      8);
  EXPECT_EQ(out.integer("training.global_batch"), 128);
  EXPECT_EQ(out.integer("layout.micro_batch"), 2);
  EXPECT_EQ(out.integer("training.sequence_length"), 4096);
}

}  // namespace
}  // namespace stepcast
