// SPDX-License-Identifier: Apache-2.0
#include "recipes/import.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "layout/override.h"
#include "recipes/deepspeed.h"
#include "recipes/json_keys.h"
#include "recipes/kubernetes.h"
#include "recipes/megatron.h"
#include "recipes/torchtitan.h"

namespace stepcast {
namespace {

using nlohmann::json;

ImportedScenario read_hugging_face(const ImportInput& input) {
  ImportedScenario out;
  out.file = input.file;
  out.gpus = input.gpus;
  const json document = parse_json_object(input.text, false, out);
  if (document.is_object()) {
    out.set_json("model", document.dump(-1, ' ', false, json::error_handler_t::replace), "");
  }
  return out;
}

bool has_any(const json& object, std::initializer_list<const char*> keys) {
  return std::any_of(keys.begin(), keys.end(),
                     [&](const char* key) { return object.contains(key); });
}

}  // namespace

std::vector<std::string> import_format_names() {
  return {"megatron", "deepspeed", "torchtitan", "huggingface"};
}

ImportFormat detect_format(const std::string& text) {
  const json document = json::parse(text, nullptr, false, true);
  if (document.is_object()) {
    if (has_any(document, {"model_type", "architectures", "text_config"})) {
      return ImportFormat::kHuggingFace;
    }
    return document.contains("parallelism") ? ImportFormat::kTorchtitan : ImportFormat::kDeepSpeed;
  }
  // JSON with a mistake in it is to be told as such.
  if (const auto begin = text.find_first_not_of(" \t\r\n");
      begin != std::string::npos && text[begin] == '{') {
    return text.find("\"model_type\"") != std::string::npos ? ImportFormat::kHuggingFace
                                                            : ImportFormat::kDeepSpeed;
  }
  for (const char* table : {"\n[training]", "\n[parallelism]", "\n[model]"}) {
    if (("\n" + text).find(table) != std::string::npos) return ImportFormat::kTorchtitan;
  }
  return ImportFormat::kMegatron;
}

ImportedScenario import_text(ImportFormat format, const ImportInput& input) {
  switch (format) {
    case ImportFormat::kMegatron:
      return read_megatron(input);
    case ImportFormat::kDeepSpeed:
      return read_deepspeed(input);
    case ImportFormat::kTorchtitan:
      return read_torchtitan(input);
    case ImportFormat::kHuggingFace:
      return read_hugging_face(input);
  }
  return {};
}

Errors check_rules(ImportFormat format, const Scenario& scenario) {
  switch (format) {
    case ImportFormat::kMegatron:
      return check_megatron(scenario);
    case ImportFormat::kDeepSpeed:
      return check_deepspeed(scenario);
    case ImportFormat::kTorchtitan:
      return check_torchtitan(scenario);
    case ImportFormat::kHuggingFace:
      return {};
  }
  return {};
}

std::string text_to_import(const std::string& text) {
  const auto files = files_in_manifest(text);
  if (files.empty()) return text;
  const auto settings = std::find_if(files.begin(), files.end(), [](const LaunchFile& file) {
    return file.name.ends_with(".json") || file.name.ends_with(".toml");
  });
  return settings != files.end() ? settings->text : files.front().text;
}

json scenario_document(const ImportedScenario& imported) {
  json out = {{"stepcast", 1}};
  for (const Setting& setting : imported.settings) {
    // A model that is only named cannot hold a key inside it.
    const std::string part = setting.path.substr(0, setting.path.find('.'));
    if (part != setting.path && out.contains(part) && !out[part].is_object()) out.erase(part);
    apply_override(out, setting.path, setting.value);
  }
  return out;
}

}  // namespace stepcast
