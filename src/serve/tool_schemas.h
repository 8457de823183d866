// SPDX-License-Identifier: Apache-2.0
// JSON schemas of what tools take. The schema of a scenario follows from the table of keys.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "stepcast/data.h"

namespace stepcast {

// An object with these properties, of which the first `required` must be there.
nlohmann::ordered_json object_schema(
    std::vector<std::pair<std::string, nlohmann::ordered_json>> properties, std::size_t required);
nlohmann::ordered_json text_schema(const std::string& description);
nlohmann::ordered_json list_schema(nlohmann::ordered_json items, const std::string& description);
nlohmann::ordered_json integer_schema(const std::string& description, std::int64_t least,
                                      std::int64_t most, std::int64_t fallback);

nlohmann::ordered_json scenario_schema(const api::Data& data);
// Without its keys, for all tools but the first: they would say the same again.
nlohmann::ordered_json brief_scenario_schema();
// Keys of a scenario by their paths, to be laid over it.
nlohmann::ordered_json set_schema();

}  // namespace stepcast
