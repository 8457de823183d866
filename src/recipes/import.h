// SPDX-License-Identifier: Apache-2.0
// Reading what other tools launch with: Megatron's flags, DeepSpeed's JSON, torchtitan's settings,
// a Hugging Face config, or a manifest that holds one of them.
#pragma once

#include <string>
#include <vector>

#include "core/json_fwd.h"
#include "recipes/imported_scenario.h"

namespace stepcast {

struct Scenario;

std::vector<std::string> import_format_names();

// The name of the format that a file's text says it is.
std::string detect_format(const std::string& text);
bool is_script(const std::string& format);  // of the shell, which has variables
// Settings of this format may have Accelerate's file beside them (ImportInput::accelerate).
bool may_have_accelerate(const std::string& format);
bool is_accelerate(const std::string& text);

ImportedScenario import_text(const std::string& format, const ImportInput& input);

// Lists what the format's own program would refuse of a scenario that is legal in itself.
Errors check_rules(const std::string& format, const Scenario& scenario);

// A Kubernetes manifest's file with the settings, else the text itself.
std::string text_to_import(const std::string& text);

// The scenario document that the settings make, in their order. `errors` gets the settings that
// make none.
SortedJson scenario_document(const ImportedScenario& imported, Errors* errors = nullptr);

}  // namespace stepcast
