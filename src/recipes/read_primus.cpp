// SPDX-License-Identifier: Apache-2.0
// Recipes of AMD's Primus (AMD-AGI/Primus, examples/megatron and examples/torchtitan, 2025 and
// 2026): a model by the name of its file, and settings laid over those of the framework.
#include <fmt/format.h>

#include <algorithm>

#include "core/gathered_errors.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "recipes/megatron_read.h"
#include "recipes/torchtitan.h"
#include "recipes/yaml_settings.h"

namespace stepcast {
namespace {

// "llama3.1_70B.yaml" and "mixtral_8x7B_v0.1.yaml" as people write the models.
std::string primus_model(std::string file) {
  if (const std::size_t end = file.rfind(".yaml"); end != std::string::npos) file.resize(end);
  if (const std::size_t end = file.rfind("_v0."); end != std::string::npos) file.resize(end);
  std::ranges::replace(file, '_', '-');
  return file;
}

// A value as Megatron prints it; "" for what is no argument.
std::string as_megatron_prints(const SortedJson& value) {
  if (value.is_null()) return "None";
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_number()) return json_text(value);
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return "";
  std::string out;
  for (const SortedJson& one : value) {
    out += (out.empty() ? "" : ",") + (one.is_string() ? one.get<std::string>() : json_text(one));
  }
  return "[" + out + "]";
}

void take_over(ImportedScenario part, ImportedScenario& out) {
  for (Setting& setting : part.settings) {
    // The model is another file, of which only the name is here.
    if (setting.path.starts_with("model.")) {
      out.warnings.push_back(fmt::format("{} changes the model that is named: --set {}={}",
                                         setting.origin, setting.path, setting.value));
      continue;
    }
    out.settings.push_back(std::move(setting));
  }
  std::ranges::move(part.warnings, std::back_inserter(out.warnings));
  std::ranges::move(part.without_effect, std::back_inserter(out.without_effect));
  append(out.errors, part.errors);
  if (part.gpus) out.gpus = part.gpus;
}

void take_megatron_overrides(const SortedJson& overrides, const ImportInput& input,
                             ImportedScenario& out) {
  ImportInput arguments = input;
  arguments.text.clear();
  for (const auto& [key, value] : overrides.items()) {
    const std::string text = as_megatron_prints(value);
    if (text.empty() || text == "None") continue;
    arguments.text += fmt::format("{} ....... {}\n", key, text);
  }
  take_over(read_megatron_overrides(arguments), out);
  if (overrides.contains("use_torch_fsdp2") && overrides["use_torch_fsdp2"] == true) {
    out.set_word("training.framework", "fsdp", "use_torch_fsdp2");
    out.set_integer("layout.zero", 3, "use_torch_fsdp2");
  }
  // Megatron gathers parameters beside the forward with the distributed optimizer alone, which the
  // files below then switch on.
  const bool gathers =
      overrides.contains("overlap_param_gather") && overrides["overlap_param_gather"] == true;
  if (gathers && !overrides.contains("use_distributed_optimizer")) {
    out.set_integer("layout.zero", 1, "overlap_param_gather");
  }
  if (!overrides.contains("bf16") && !overrides.contains("fp16") && !overrides.contains("fp8")) {
    out.set_word("training.precision", "bf16", "");
  }
}

}  // namespace

void read_primus(const SortedJson& root, const ImportInput& input, ImportedScenario& out) {
  const SortedJson& trainer = root["modules"]["pre_trainer"];
  const auto text = [&](const char* key) {
    return trainer.is_object() && trainer.contains(key) && trainer[key].is_string()
               ? trainer[key].get<std::string>()
               : std::string();
  };
  const bool has_overrides =
      trainer.is_object() && trainer.contains("overrides") && trainer["overrides"].is_object();
  const SortedJson overrides = has_overrides ? trainer["overrides"] : SortedJson::object();
  const std::string framework = text("framework");
  if (framework == "megatron") {
    take_megatron_overrides(overrides, input, out);
  } else if (framework == "torchtitan") {
    ImportInput settings = input;
    settings.text = json_text(overrides);
    take_over(read_torchtitan(settings), out);
  } else {
    out.fail(ErrorCode::kNotSupported, "modules.pre_trainer.framework",
             fmt::format("'{}' is not supported yet", framework), "megatron or torchtitan");
    return;
  }
  if (const std::string model = text("model"); !model.empty()) {
    out.set_word("model", primus_model(model), "modules.pre_trainer.model");
  }
}

}  // namespace stepcast
