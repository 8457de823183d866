// SPDX-License-Identifier: Apache-2.0
#include "layout/key_types.h"

#include <nlohmann/json.hpp>

namespace stepcast {

void write_json(std::int64_t value, nlohmann::json& out) { out = value; }
void write_json(int value, nlohmann::json& out) { out = value; }
void write_json(bool value, nlohmann::json& out) { out = value; }
void write_json(double value, nlohmann::json& out) { out = value; }
void write_json(const char* value, nlohmann::json& out) { out = value; }
void write_json(const std::string& value, nlohmann::json& out) { out = value; }
void write_json(const std::vector<std::int64_t>& value, nlohmann::json& out) { out = value; }

}  // namespace stepcast
