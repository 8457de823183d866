// SPDX-License-Identifier: Apache-2.0
// Values of one event of a trace. A trace has events of many writers, so a value of another type
// counts as none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/json_fwd.h"

namespace stepcast {

double event_number(const SortedJson& object, const char* key);     // 0 for none
std::int64_t event_id(const SortedJson& args, const char* key);     // -1 for none
std::string event_text(const SortedJson& object, const char* key);  // "" for none
std::string event_thread(const SortedJson& event);                  // process and thread
std::vector<std::int64_t> event_ranks(const SortedJson& args);      // of the process group
const SortedJson& event_args(const SortedJson& event);              // an object, maybe empty
std::vector<std::vector<std::int64_t>> event_dims(const SortedJson& args);  // of the inputs

}  // namespace stepcast
