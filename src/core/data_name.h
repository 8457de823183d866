// SPDX-License-Identifier: Apache-2.0
// How users name models, clusters, profiles and suites: by the stem of a shipped file, or by the
// path of one of their own.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace stepcast {

bool is_path(const std::string& name);  // it has a '/' or ends in .json

// The stems of a folder's .json files, sorted. A folder that is not there has none; one that is
// there and cannot be read is an error, because a list that lacks something is a wrong one.
Result<std::vector<std::string>> data_names(const std::string& folder);

}  // namespace stepcast
