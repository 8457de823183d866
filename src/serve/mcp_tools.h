// SPDX-License-Identifier: Apache-2.0
// The tools that agents call. Each is a row: its name, its words, the JSON schema of its arguments,
// and what it calls. Schemas follow from the tables of keys.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/json_fwd.h"
#include "core/quantity.h"
#include "core/result.h"
#include "core/work_limits.h"
#include "stepcast/data.h"

namespace stepcast {

struct ToolContext {
  api::Data data;
  Seconds time_limit{30};  // of one call
  int threads = 1;
  ByteCount memory_limit = kUsualMemoryLimit;  // of one forecast
};

struct McpTool {
  const char* name;
  const char* title;
  const char* description;
  // An object of JSON Schema 2020-12.
  Json (*schema)(const ToolContext& context);
  // The answer as JSON. Errors: what is wrong with the arguments, each with its remedy. None, or
  // Stopped: the call has had its time (core/work_limits.h).
  Result<Json> (*call)(const ToolContext& context, const Json& arguments);
};

// In the order in which clients list them.
const std::vector<McpTool>& mcp_tools();

}  // namespace stepcast
