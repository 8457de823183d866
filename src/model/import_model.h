// SPDX-License-Identifier: Apache-2.0
// Reading a model: the native object, or a Hugging Face config.json by its `model_type`.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace stepcast {

class JsonValue;
struct Model;

// An object in a scenario: native when it has `layers`, Hugging Face when it has `model_type` (or,
// failing both, an error that names the two forms). Errors go to the value's document; the model
// is meaningful only if none was added. `assume_family` reads an unknown model_type as that family.
Model read_model(const JsonValue& value, const std::string& assume_family = "");

// A shipped name ("llama-3.1-70b") or a path to a config.json. `folder` holds the shipped ones.
Result<Model> find_model(const std::string& name_or_path, const std::string& folder,
                         const std::string& assume_family = "");

// "models/llama-7b.json" is llama-7b; ".../Llama-2-7b-hf/config.json" is Llama-2-7b-hf.
std::string model_name_of_file(const std::string& file);

struct ModelEntry {
  std::string name;
  std::string source;
  bool has_vision = false;  // which is not modelled
};

// All shipped models, by name.
Result<std::vector<ModelEntry>> list_models(const std::string& folder);
std::vector<std::string> supported_families();

// Keys of a config.json that tell of a model what `family` has not, so that it would be forecast as
// one that it is not. The family is one of the supported.
std::vector<std::string> keys_beyond(const JsonValue& config, const std::string& family);

}  // namespace stepcast
