// SPDX-License-Identifier: Apache-2.0
#include "recipes/yaml_settings.h"

#include <algorithm>
#include <array>

#include "core/gathered_errors.h"
#include "core/json_tree.h"
#include "recipes/yaml_json.h"

namespace stepcast {
namespace {

bool has_keys(const SortedJson& root, std::initializer_list<const char*> keys) {
  return std::all_of(keys.begin(), keys.end(), [&](const char* key) { return root.contains(key); });
}

constexpr std::array kYamlFormats{
    YamlFormat{"automodel", "step_scheduler",
               [](const SortedJson& root) {
                 return has_keys(root, {"step_scheduler", "model"});
               },
               read_automodel},
    YamlFormat{"primus", "pre_trainer",
               [](const SortedJson& root) {
                 return has_keys(root, {"modules"}) && root["modules"].is_object() &&
                        root["modules"].contains("pre_trainer");
               },
               read_primus},
    YamlFormat{"accelerate", "distributed_type",
               [](const SortedJson& root) { return has_keys(root, {"distributed_type"}); },
               read_accelerate},
    YamlFormat{"trl", "per_device_train_batch_size",
               [](const SortedJson& root) {
                 return has_keys(root, {"model_name_or_path", "per_device_train_batch_size"});
               },
               read_trl},
    YamlFormat{"axolotl", "base_model",
               [](const SortedJson& root) {
                 return has_keys(root, {"base_model", "micro_batch_size"});
               },
               read_axolotl},
    YamlFormat{"torchtune", "torchtune.models",
               [](const SortedJson& root) {
                 return has_keys(root, {"model", "batch_size"}) && root["model"].is_object() &&
                        root["model"].contains("_component_");
               },
               read_torchtune},
    YamlFormat{"llm-foundry", "global_train_batch_size",
               [](const SortedJson& root) {
                 return has_keys(root, {"global_train_batch_size", "model"});
               },
               read_llm_foundry},
    YamlFormat{"astra-sim", "npus_count",
               [](const SortedJson& root) {
                 return has_keys(root, {"topology", "npus_count", "bandwidth", "latency"});
               },
               read_astra_network}};

}  // namespace

std::span<const YamlFormat> yaml_formats() { return kYamlFormats; }

const YamlFormat* yaml_format_of(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || text[first] == '{') return nullptr;
  for (const YamlFormat& format : kYamlFormats) {
    if (text.find(format.marker) == std::string::npos) continue;
    const auto root = yaml_to_json(text, "");
    if (!root || !root->is_object()) return nullptr;
    if (format.recognises(*root)) return &format;
  }
  return nullptr;
}

const YamlFormat* yaml_format_named(const std::string& name) {
  const auto found = std::ranges::find(kYamlFormats, name, &YamlFormat::name);
  return found == kYamlFormats.end() ? nullptr : &*found;
}

ImportedScenario read_yaml_settings(const YamlFormat& format, const ImportInput& input) {
  ImportedScenario out;
  out.file = input.file;
  out.gpus = input.gpus;
  auto root = yaml_to_json(input.text, input.file);
  if (!root) {
    append(out.errors, root.error());
    return out;
  }
  if (!root->is_object() || !format.recognises(*root)) {
    out.fail(ErrorCode::kFormat, "", std::string("holds no settings of ") + format.name);
    return out;
  }
  format.read(*root, input, out);
  return out;
}

}  // namespace stepcast
