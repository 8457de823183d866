// SPDX-License-Identifier: Apache-2.0
// A cluster that is given by name alone.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace stepcast {

// "dgx-h100" or "dgx-h100x8" as the object it stands for: "base", and "nodes" where it says so.
nlohmann::json named_cluster(const std::string& text, const std::string& topologies_folder);

// Gives the value of a scenario's `cluster`, named or not, `gpus` GPUs in place of its own size.
void set_gpus(nlohmann::json& cluster, std::int64_t gpus, const std::string& topologies_folder);

}  // namespace stepcast
