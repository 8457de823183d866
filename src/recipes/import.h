// SPDX-License-Identifier: Apache-2.0
// Reading what other tools launch with: Megatron's flags, DeepSpeed's JSON, torchtitan's settings,
// a Hugging Face config, or a manifest that holds one of them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "layout/scenario.h"
#include "recipes/imported_scenario.h"

namespace stepcast {

enum class ImportFormat { kMegatron, kDeepSpeed, kTorchtitan, kHuggingFace };

std::vector<std::string> import_format_names();  // in the order of the enumerators

// What a file's text says it is.
ImportFormat detect_format(const std::string& text);

ImportedScenario import_text(ImportFormat format, const ImportInput& input);

// What the format's own program would refuse of a scenario that is legal in itself.
Errors check_rules(ImportFormat format, const Scenario& scenario);

// A Kubernetes manifest's file with the settings, else the text itself.
std::string text_to_import(const std::string& text);

// The scenario document that the settings make, in their order.
nlohmann::json scenario_document(const ImportedScenario& imported);

}  // namespace stepcast
