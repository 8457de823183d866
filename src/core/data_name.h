// SPDX-License-Identifier: Apache-2.0
// How users name models, clusters, profiles and suites: by the stem of a shipped file, or by the
// path of one of their own.
#pragma once

#include <string>

namespace stepcast {

bool is_path(const std::string& name);  // it has a '/' or ends in .json

}  // namespace stepcast
