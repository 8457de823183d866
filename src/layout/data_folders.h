// SPDX-License-Identifier: Apache-2.0
// The folders of shipped data.
#pragma once

#include <string>
#include <tuple>

#include "core/json_field.h"

namespace stepcast {

struct DataFolders {
  std::string models;
  std::string topologies;
  std::string profiles;

  static auto fields() {
    using F = DataFolders;
    return std::tuple{json_field("models", &F::models).required(),
                      json_field("topologies", &F::topologies).required(),
                      json_field("profiles", &F::profiles).required()};
  }
};

}  // namespace stepcast
