// SPDX-License-Identifier: Apache-2.0
#include "core/data_name.h"

namespace stepcast {

bool is_path(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".json");
}

}  // namespace stepcast
