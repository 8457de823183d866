// SPDX-License-Identifier: Apache-2.0
// Files of the trainers of adapters: 200 seeded random fine-tunings of each that it takes. Its
// words are among those that it documents (tests/data/recipes), and read back they make the same
// scenario, so the same forecast.
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/text_file.h"
#include "places.h"
#include "predict/prediction.h"
#include "random_choice.h"
#include "recipes/export.h"
#include "recipes/refusals.h"
#include "recipes/two_hundred.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using nlohmann::json;
using testing::scenario_from;
using testing::source_folders;

json json_of(const YAML::Node& node) {
  if (node.IsMap()) {
    json out = json::object();
    for (const auto& entry : node) out[entry.first.as<std::string>()] = json_of(entry.second);
    return out;
  }
  if (node.IsSequence()) {
    json out = json::array();
    for (const auto& item : node) out.push_back(json_of(item));
    return out;
  }
  if (node.IsNull()) return nullptr;
  bool truth = false;
  if (node.Tag() != "!" && YAML::convert<bool>::decode(node, truth)) return truth;
  std::int64_t whole = 0;
  if (node.Tag() != "!" && YAML::convert<std::int64_t>::decode(node, whole)) return whole;
  return node.as<std::string>();
}

using Files = std::map<std::string, json>;

Files read_files(const Exported& exported) {
  Files out;
  for (const LaunchFile& file : exported.files) {
    out[file.name] = json_of(YAML::Load(file.text));  // JSON is YAML
  }
  return out;
}

class Draw : testing::Draws {
 public:
  Draw() : Draws(39) {}
  json next() {
    const std::int64_t gpus = pick({1, 2, 4, 8, 16}), micro = pick({1, 2, 4});
    json out = {{"stepcast", 1},
                {"model", word({"llama-2-7b", "llama-3-8b", "llama-3.1-8b", "llama-3.1-70b",
                                "qwen2.5-7b", "gpt3-1.3b"})},
                {"cluster", {{"base", word({"dgx-h100", "dgx-a100-80g"})}, {"gpus", gpus}}},
                {"training",
                 {{"mode", word({"lora", "qlora"})},
                  {"precision", word({"bf16", "bf16", "fp16", "fp32"})},
                  {"global_batch", gpus * micro * pick({1, 2, 4, 16})},
                  {"sequence_length", pick({512, 1024, 2048})},
                  {"lora_rank", pick({8, 16, 64})},
                  {"lora_dropout", pick({0, 1}) * 0.05},
                  {"compile", chance(2)},
                  {"grad_clip", chance(4) ? "none" : "global"},
                  {"attention", chance(4) ? "unfused" : "flash"}}},
                {"layout", {{"micro_batch", micro}, {"zero", pick({2, 3})}}}};
    if (chance(3)) out["training"]["lora_targets"] = {"qkv"};
    if (chance(4)) out["training"]["lora_targets"] = {"qkv", "attention_out"};
    if (chance(2)) out["layout"]["recompute"] = chance(4) ? "selective" : "full";
    if (chance(4)) out["layout"]["offload"] = {{"parameters", 1}, {"optimizer", 1}};
    if (chance(8)) out["layout"]["tp"] = 2;
    return out;
  }
};

json targets_of(const json& modules, bool mlp) {
  json out = json::array();
  std::set<std::string> names;
  for (const json& name : modules) names.insert(name.get<std::string>());
  if (names.contains("q_proj")) out.push_back("qkv");
  if (names.contains("o_proj") || names.contains("output_proj")) out.push_back("attention_out");
  if (mlp || names.contains("gate_proj")) out.push_back("mlp");
  return out;
}

// YAML's numbers with a point arrive as text.
double number_of(const json& value) {
  return value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>();
}

json offload_of(bool parameters, bool activations) {
  return {{"parameters", parameters ? 1 : 0},
          {"optimizer", parameters ? 1 : 0},
          {"activations", activations ? 1 : 0}};
}

// The scenario that these files start on the cluster. On one GPU no file says what is sharded.
json from_peft(const Files& files, json stated) {
  const json &sft = files.at("sft.yaml"), &launch = files.at("accelerate.yaml");
  const std::int64_t ranks = launch.at("num_processes");
  const bool sharded = launch.at("distributed_type") == "FSDP";
  EXPECT_EQ(sharded, ranks > 1);
  const json none = json::object();
  const json& fsdp = sharded ? launch.at("fsdp_config") : none;
  const std::int64_t micro = sft.at("per_device_train_batch_size");
  const std::int64_t steps = sft.at("gradient_accumulation_steps");
  EXPECT_EQ(files.at("adapter_config.json").at("target_modules"), sft.at("lora_target_modules"));
  EXPECT_EQ(files.at("adapter_config.json").at("r"), sft.at("lora_r"));
  const bool bf16 = sft.at("bf16"), fp16 = sft.at("fp16"),
             flash = sft.at("attn_implementation") != "eager";
  stated["training"] = {
      {"mode", sft.at("load_in_4bit") == true ? "qlora" : "lora"},
      {"framework", "fsdp"},
      {"precision", bf16   ? "bf16"
                    : fp16 ? "fp16"
                           : "fp32"},
      {"global_batch", micro * steps * ranks},
      {"sequence_length", sft.at("max_length")},
      {"lora_rank", sft.at("lora_r")},
      {"lora_dropout", number_of(sft.at("lora_dropout"))},
      {"lora_targets", targets_of(sft.at("lora_target_modules"), false)},
      {"compile", sft.at("torch_compile")},
      {"grad_clip",
       sft.at("max_grad_norm") == "1.0" || sft.at("max_grad_norm") == 1 ? "global" : "none"},
      {"attention", flash ? "flash" : "unfused"}};
  const json zero = stated["layout"]["zero"];
  stated["layout"] = {
      {"micro_batch", micro},
      {"zero", sharded ? json(fsdp.at("fsdp_reshard_after_forward") == true ? 3 : 2) : zero},
      {"recompute", sft.at("gradient_checkpointing") == true ? "full" : "none"},
      {"offload", offload_of(sharded && fsdp.at("fsdp_offload_params") == true,
                             sft.at("activation_offloading") == true)}};
  stated["model"] = sft.at("model_name_or_path");
  return stated;
}

// "torchtune.models.llama3_1.qlora_llama3_1_8b" of 8B parameters, as the shipped model is named.
std::string model_of(const std::string& component) {
  static const std::map<std::string, std::string> names = {{"llama2_7b", "llama-2-7b"},
                                                           {"llama3_8b", "llama-3-8b"},
                                                           {"llama3_1_8b", "llama-3.1-8b"},
                                                           {"llama3_1_70b", "llama-3.1-70b"}};
  const auto found = names.find(component.substr(component.find("lora_") + 5));
  return found == names.end() ? component : found->second;
}

json from_torchtune(const Files& files, json stated) {
  const json& file = files.at("torchtune.yaml");
  const json& model = file.at("model");
  const std::string component = model.at("_component_");
  const std::int64_t ranks = stated["cluster"]["gpus"], micro = file.at("batch_size");
  const std::int64_t steps = file.at("gradient_accumulation_steps");
  const bool sharded = file.contains("fsdp_reshard_after_forward");
  EXPECT_EQ(sharded, ranks > 1);
  stated["training"] = {{"mode", component.find(".qlora_") == std::string::npos ? "lora" : "qlora"},
                        {"framework", "fsdp"},
                        {"precision", file.at("dtype")},
                        {"global_batch", micro * steps * ranks},
                        {"sequence_length", file.at("tokenizer").at("max_seq_len")},
                        {"lora_rank", model.at("lora_rank")},
                        {"lora_dropout", number_of(model.at("lora_dropout"))},
                        {"lora_targets", targets_of(model.at("lora_attn_modules"),
                                                    model.at("apply_lora_to_mlp") == true)},
                        {"compile", file.at("compile")},
                        {"grad_clip", file.at("clip_grad_norm").is_null() ? "none" : "global"}};
  const json zero = stated["layout"]["zero"];
  stated["layout"] = {
      {"micro_batch", micro},
      {"zero", sharded ? json(file.at("fsdp_reshard_after_forward") == true ? 3 : 2) : zero},
      {"recompute", file.at("enable_activation_checkpointing") == true ? "full" : "none"},
      {"offload", offload_of(sharded && file.at("fsdp_cpu_offload") == true,
                             file.at("enable_activation_offloading") == true)}};
  stated["model"] = model_of(component);
  return stated;
}

void expect_documented(const json& value, const std::string& path, const json& documented) {
  if (!value.is_object()) return;
  ASSERT_TRUE(documented.contains(path)) << path;
  std::set<std::string> known;
  for (const json& key : documented.at(path)) known.insert(key.get<std::string>());
  for (const auto& [key, inner] : value.items()) {
    EXPECT_TRUE(known.contains(key)) << path << " " << key;
    expect_documented(inner, path + " " + key, documented);
  }
}

struct Trainer {
  const char* target;
  json (*read)(const Files& files, json stated);
};

void PrintTo(const Trainer& trainer, std::ostream* out) { *out << trainer.target; }

class AdapterFiles : public ::testing::TestWithParam<Trainer> {};

TEST_P(AdapterFiles, StartWhatWasForecast) {
  const auto text = read_text_file(source_folder() + "/tests/data/recipes/adapter_keys.json");
  const json documented = json::parse(text.value_or("{}"));
  Draw draw;
  int written = 0, draws = 0;
  for (; draws < testing::kMostDraws && written < testing::kAccepted; ++draws) {
    const json stated = draw.next();
    const auto document = std::move(*JsonDocument::parse(stated.dump(), "drawn.json"));
    const auto scenario = read_scenario(*document, source_folders());
    if (!scenario) continue;
    const auto exported =
        export_scenario(*scenario, stated.dump(), GetParam().target, {}, source_folders());
    if (!exported) {
      for (const Error& error : exported.error()) {
        EXPECT_FALSE(error.path.empty()) << to_string(error);
        EXPECT_FALSE(error.hint.empty()) << to_string(error);
      }
      continue;
    }
    ++written;
    const Files files = read_files(*exported);
    for (const auto& [name, content] : files) expect_documented(content, name, documented);
    const json read = GetParam().read(files, stated);
    const Scenario back = scenario_from(read.dump());
    ASSERT_EQ(to_json(back), to_json(*scenario)) << stated << "\n" << read;
    if (written % 10 != 0) continue;
    const auto before = predict(*scenario, source_folders(), {});
    const auto after = predict(back, source_folders(), {});
    ASSERT_TRUE(before.has_value() && after.has_value()) << stated;
    EXPECT_EQ(before->step_time, after->step_time) << stated;
    EXPECT_EQ(before->peak_device, after->peak_device) << stated;
  }
  EXPECT_EQ(written, testing::kAccepted) << "of " << draws;
}

INSTANTIATE_TEST_SUITE_P(Trainers, AdapterFiles,
                         ::testing::Values(Trainer{"peft", from_peft},
                                           Trainer{"torchtune", from_torchtune}),
                         [](const auto& trainer) { return std::string(trainer.param.target); });

// Experts have modules in some releases and packed parameters in others; attention has names.
TEST(AdapterFiles, NameTheProjectionsOfLatentAttention) {
  const std::string text = R"({"stepcast": 1, "model": "deepseek-v2-lite",
      "cluster": {"base": "dgx-h100", "gpus": 8}, "training": {"framework": "fsdp",
      "global_batch": 8, "sequence_length": 512, "mode": "lora")";
  const auto exported = [&](const std::string& targets) {
    const std::string whole = text + targets + "}}";
    return export_scenario(scenario_from(whole), whole, "peft", {}, source_folders());
  };
  const auto attention = exported(R"(, "lora_targets": ["qkv", "attention_out"])");
  ASSERT_TRUE(attention) << to_string(attention.error());
  EXPECT_EQ(read_files(*attention)["adapter_config.json"]["target_modules"],
            json({"q_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj"}));
  const auto all = exported("");
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().front().path, "training.lora_targets");
}

}  // namespace
}  // namespace stepcast
