// SPDX-License-Identifier: Apache-2.0
// Settings in YAML of tools that are read and not written: NeMo AutoModel, AMD's Primus, Hugging
// Face's Accelerate, TRL, Axolotl, torchtune and llm-foundry, and a network of ASTRA-sim. One row
// per tool.
#pragma once

#include <span>
#include <string>

#include "core/json_fwd.h"
#include "recipes/imported_scenario.h"

namespace stepcast {

struct YamlFormat {
  const char* name;    // of `import --from`
  const char* marker;  // stands in every such file, so that others need not be parsed
  bool (*recognises)(const SortedJson& root);
  void (*read)(const SortedJson& root, const ImportInput& input, ImportedScenario& out);
};
std::span<const YamlFormat> yaml_formats();

// The format that the text has; null: none of them, or no YAML.
const YamlFormat* yaml_format_of(const std::string& text);
const YamlFormat* yaml_format_named(const std::string& name);
ImportedScenario read_yaml_settings(const YamlFormat& format, const ImportInput& input);

// The readers, each in a file of its name.
void read_automodel(const SortedJson& root, const ImportInput& input, ImportedScenario& out);
void read_primus(const SortedJson& root, const ImportInput& input, ImportedScenario& out);
void read_accelerate(const SortedJson& root, const ImportInput& input, ImportedScenario& out);
void read_trl(const SortedJson& root, const ImportInput& input, ImportedScenario& out);
void read_axolotl(const SortedJson& root, const ImportInput& input, ImportedScenario& out);
void read_astra_network(const SortedJson& root, const ImportInput& input, ImportedScenario& out);
void read_torchtune(const SortedJson& root, const ImportInput& input, ImportedScenario& out);
void read_llm_foundry(const SortedJson& root, const ImportInput& input, ImportedScenario& out);

}  // namespace stepcast
