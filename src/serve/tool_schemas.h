// SPDX-License-Identifier: Apache-2.0
// JSON schemas of what tools take. The schema of a scenario follows from the table of keys.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/json_fwd.h"
#include "stepcast/data.h"

namespace stepcast {

// An object with these properties, of which the first `required` must be there.
Json object_schema(std::vector<std::pair<std::string, Json>> properties, std::size_t required);
Json text_schema(const std::string& description);
Json list_schema(Json items, const std::string& description);
Json integer_schema(const std::string& description, std::int64_t least, std::int64_t most,
                    std::int64_t fallback);

Json scenario_schema(const api::Data& data);
// Without its keys, for all tools but the first: they would say the same again.
Json brief_scenario_schema();
// Keys of a scenario by their paths, to be laid over it.
Json set_schema();

}  // namespace stepcast
