// SPDX-License-Identifier: Apache-2.0
// How users name models, clusters, profiles and suites: by the stem of a shipped file, or by the
// path of one of their own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace stepcast {

bool is_path(const std::string& name);  // it has a '/' or ends in .json, .xml or .txt

// A name without what people spell differently: "llama3.18b" for "Llama-3.1-8B" and "llama3.1_8b".
std::string plain_name(std::string_view name);

// All of `names` in which `word` stands, both spelled plainly.
std::vector<std::string> names_with(std::string_view word, const std::vector<std::string>& names);

// "did you mean A, B or C?" where two or three names fit a word; else did_you_mean of all `names`.
std::string nearest_of(std::string_view word, const std::vector<std::string>& fitting,
                       const std::vector<std::string>& names);

// The stems of a folder's .json files, sorted. A folder that is not there has none; one that is
// there and cannot be read is an error, because a list that lacks something is a wrong one.
Result<std::vector<std::string>> data_names(const std::string& folder);

}  // namespace stepcast
