// SPDX-License-Identifier: Apache-2.0
// YAML as the JSON that says the same, as PyYAML and OmegaConf read it: plain words have types,
// ${a.b} is the value of another key, and ${NAME:value} that value, as no environment is there.
#pragma once

#include <string>

#include "core/json_fwd.h"
#include "core/result.h"

namespace stepcast {

// Errors: no YAML, one that nests too deep, or whose aliases unfold to too much.
Result<SortedJson> yaml_to_json(const std::string& text, const std::string& file);

}  // namespace stepcast
