// SPDX-License-Identifier: Apache-2.0
// The models that ship lie here.
#pragma once

#include <string>

#include "places.h"

namespace stepcast {

inline const std::string kShippedModels = source_folder() + "/models";

}  // namespace stepcast
