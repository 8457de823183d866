// SPDX-License-Identifier: Apache-2.0
#include "recipes/import.h"

#include <algorithm>

#include "core/gathered_errors.h"
#include "core/json_tree.h"
#include "core/parse_json.h"
#include "core/text/escape.h"
#include "layout/override.h"
#include "recipes/json_keys.h"
#include "recipes/kubernetes.h"
#include "recipes/launch_format.h"
#include "recipes/trl_script.h"
#include "recipes/yaml_settings.h"

namespace stepcast {
namespace {

constexpr const char* kHuggingFace = "huggingface";
constexpr const char* kTrl = "trl";
constexpr const char* kTrlScript = "trl-script";
constexpr const char* kAccelerate = "accelerate";

ImportedScenario read_hugging_face(const ImportInput& input) {
  ImportedScenario out;
  out.file = input.file;
  out.gpus = input.gpus;
  const SortedJson document = parse_json_object(input.text, false, out);
  if (document.is_object()) {
    out.set_json("model", json_text(document), "");
  }
  return out;
}

// In a JSON file with a mistake in it the text alone tells.
bool is_model_config(const std::string& text) {
  const auto document = parse_json(text, "", {.comments = true});
  if (document && document->is_object()) {
    return document->contains("model_type") || document->contains("architectures") ||
           document->contains("text_config");
  }
  const auto begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string::npos && text[begin] == '{' &&
         text.find("\"model_type\"") != std::string::npos;
}

}  // namespace

std::vector<std::string> import_format_names() {
  std::vector<std::string> out;
  for (const LaunchFormat* format : launch_formats()) out.emplace_back(format->name);
  for (const YamlFormat& format : yaml_formats()) out.emplace_back(format.name);
  out.emplace_back(kTrlScript);
  out.emplace_back(kHuggingFace);
  return out;
}

std::string detect_format(const std::string& text) {
  if (is_model_config(text)) return kHuggingFace;
  if (const YamlFormat* yaml = yaml_format_of(text)) return yaml->name;
  if (is_trl_script(text)) return kTrlScript;
  // The last format is asked first, because the first takes any text.
  for (auto at = launch_formats().rbegin(); at != launch_formats().rend(); ++at) {
    if ((*at)->recognises != nullptr && (*at)->recognises(text)) return (*at)->name;
  }
  return launch_formats().front()->name;
}

bool may_have_accelerate(const std::string& format) {
  return format == kTrl || format == kTrlScript;
}

bool is_accelerate(const std::string& text) {
  const YamlFormat* format = yaml_format_of(text);
  return format != nullptr && format->name == std::string(kAccelerate);
}

bool is_script(const std::string& format) {
  if (format == kTrlScript) return true;
  const LaunchFormat* found = launch_format_named(format);
  return found != nullptr && found->settings_file == nullptr;
}

ImportedScenario import_text(const std::string& format, const ImportInput& input) {
  if (const YamlFormat* yaml = yaml_format_named(format)) return read_yaml_settings(*yaml, input);
  if (format == kTrlScript) return read_trl_script(input);
  const LaunchFormat* found = launch_format_named(format);
  return found != nullptr ? found->read(input) : read_hugging_face(input);
}

Errors check_rules(const std::string& format, const Scenario& scenario) {
  const LaunchFormat* found = launch_format_named(format);
  return found != nullptr ? found->check(scenario) : Errors{};
}

std::string text_to_import(const std::string& text) {
  const auto files = files_in_manifest(text);
  if (files.empty()) return text;
  const auto settings = std::find_if(files.begin(), files.end(), [](const LaunchFile& file) {
    return file.name.ends_with(".json") || file.name.ends_with(".toml");
  });
  return settings != files.end() ? settings->text : files.front().text;
}

SortedJson scenario_document(const ImportedScenario& imported, Errors* errors) {
  SortedJson out = {{"stepcast", 1}};
  for (const Setting& setting : imported.settings) {
    // A model that is only named cannot hold a key inside it.
    const std::string part = setting.path.substr(0, setting.path.find('.'));
    if (part != setting.path && out.contains(part) && !out[part].is_object()) out.erase(part);
    Errors wrong = apply_override(out, setting.path, setting.value);
    for (Error& error : wrong) error.file = imported.file;
    if (errors != nullptr) append(*errors, wrong);
  }
  return out;
}

}  // namespace stepcast
