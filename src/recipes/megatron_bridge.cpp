// SPDX-License-Identifier: Apache-2.0
#include "recipes/megatron_bridge.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace stepcast {
namespace {

// A name that stands in several sections counts in the first of these.
constexpr const char* kSections[] = {"model",     "train",        "ddp",
                                     "optimizer", "comm_overlap", "mixed_precision"};

struct Name {
  std::string_view bridge, megatron;
};
constexpr Name kNames[] = {
    {"num_moe_experts", "num_experts"},
    {"num_layers_in_first_pipeline_stage", "decoder_first_pipeline_num_layers"},
    {"num_layers_in_last_pipeline_stage", "decoder_last_pipeline_num_layers"}};

// Recipes of fp8 by a part of the name of a mixed precision.
constexpr Name kRecipes[] = {{"current_scaling", "tensorwise"},
                             {"delayed_scaling", "delayed"},
                             {"mxfp8", "mxfp8"},
                             {"subchannel_scaling", "blockwise"}};

bool is_object(const YAML::Node& value) { return value.IsMap() && value["_target_"]; }

// A value as Python prints it; empty for what has no form of an argument.
std::string text_of(const YAML::Node& value) {
  if (value.IsNull()) return "None";
  if (value.IsScalar()) {
    const std::string text = value.Scalar();
    return text == "true" ? "True" : text == "false" ? "False" : text;
  }
  // Functions and types: {_target_: torch.bfloat16, _call_: false}.
  if (is_object(value) && value["_call_"] && value["_target_"].IsScalar()) {
    return value["_target_"].Scalar();
  }
  if (!value.IsSequence()) return "";
  std::vector<std::string> items;
  for (const YAML::Node& item : value) {
    // Layers of each stage, nested: no argument says that, and its reader refuses it by name.
    items.push_back(item.IsScalar() ? item.Scalar() : "list");
  }
  return fmt::format("[{}]", fmt::join(items, ","));
}

void add(std::string& out, std::string_view name, std::string_view value) {
  out += fmt::format("{} ....... {}\n", name, value);
}

// "bf16_with_fp8_current_scaling_mixed".
void add_precision(const std::string& name, std::string& out) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  add(out, "bf16", has("bf16") ? "True" : "False");
  add(out, "fp16", has("fp16") ? "True" : "False");
  if (has("nvfp4")) {
    add(out, "fp4", "e2m1");
    add(out, "fp4_recipe", "nvfp4");
  }
  if (!has("fp8")) return;
  add(out, "fp8", has("mxfp8") ? "e4m3" : "hybrid");
  for (const Name& recipe : kRecipes) {
    if (has(recipe.bridge)) add(out, "fp8_recipe", recipe.megatron);
  }
}

// Settings that Megatron's arguments say otherwise.
void add_derived(const YAML::Node& model, std::string& out) {
  const auto says = [&](const char* key, const char* value) {
    return model[key] && model[key].IsScalar() && model[key].Scalar() == value;
  };
  if (says("gated_linear_unit", "true")) add(out, "swiglu", "True");
  if (says("share_embeddings_and_output_weights", "false")) {
    add(out, "untie_embeddings_and_output_weights", "True");
  }
  if (model["num_query_groups"] && !model["num_query_groups"].IsNull()) {
    add(out, "group_query_attention", "True");
  }
}

std::string arguments_in(const YAML::Node& root) {
  std::string out;
  const YAML::Node precision = root["mixed_precision"];
  if (precision && precision.IsScalar()) add_precision(precision.Scalar(), out);
  add_derived(root["model"], out);
  for (const char* section : kSections) {
    const YAML::Node values = root[section];
    if (!values || !values.IsMap()) continue;
    for (const auto& entry : values) {
      if (!entry.first.IsScalar()) continue;
      const std::string key = entry.first.Scalar(), value = text_of(entry.second);
      const auto known = std::ranges::find(kNames, key, &Name::bridge);
      if (value.empty() || value == "None" || key == "attention_backend") continue;
      add(out, known == std::end(kNames) ? std::string_view(key) : known->megatron, value);
    }
  }
  return out;
}

}  // namespace

std::optional<std::string> arguments_of_bridge(const std::string& text) {
  if (text.find("num_layers:") == std::string::npos) return std::nullopt;
  try {
    const YAML::Node root = YAML::Load(text);
    if (!root.IsMap()) return std::nullopt;
    const YAML::Node model = root["model"], train = root["train"];
    const bool is_whole = model && model.IsMap() && model["num_layers"] && train && train.IsMap();
    if (!is_whole) return std::nullopt;
    return arguments_in(root);
  } catch (const YAML::Exception&) {
    return std::nullopt;  // a script may speak of layers, too
  }
}

}  // namespace stepcast
