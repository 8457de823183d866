// SPDX-License-Identifier: Apache-2.0

#include "core/json_tree.h"
#include "fuzz/readers.h"
#include "fuzz/target.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"
#include "recipes/import.h"

namespace stepcast::fuzz {

// The way of `stepcast import`, on a cluster that is given.
void import_settings(std::string_view text) {
  ImportInput input;
  input.text = text_to_import(std::string(text));
  input.file = "input";
  input.models_folder = data_folders().models;
  const std::string format = detect_format(input.text);
  const ImportedScenario imported = import_text(format, input);
  say(imported.errors);
  SortedJson scenario = scenario_document(imported);
  scenario["cluster"] = "dgx-h100x2";
  if (!scenario.contains("model")) scenario["model"] = "gpt2";
  const auto document = JsonDocument::from(scenario, "");
  const auto legal = read_legal_scenario(*document, data_folders());
  say_errors_of(legal);
  if (legal) say(check_rules(format, *legal));
}

}  // namespace stepcast::fuzz
