// SPDX-License-Identifier: Apache-2.0
// Where the models that ship lie.
#pragma once

#include <string>

namespace stepcast {

inline const std::string kShippedModels = std::string(STEPCAST_SOURCE_DIR) + "/models";

}  // namespace stepcast
