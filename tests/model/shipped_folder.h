// SPDX-License-Identifier: Apache-2.0
// The models that ship lie here.
#pragma once

#include <string>

namespace stepcast {

inline const std::string kShippedModels = std::string(STEPCAST_SOURCE_DIR) + "/models";

}  // namespace stepcast
