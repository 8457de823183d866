// SPDX-License-Identifier: Apache-2.0
#include "serve/tool_schemas.h"

#include <fmt/format.h>

#include <string_view>

#include "core/json_tree.h"

namespace stepcast {

Json object_schema(std::vector<std::pair<std::string, Json>> properties, std::size_t required) {
  Json out{{"type", "object"}, {"properties", Json::object()}};
  Json names = Json::array();
  for (auto& [name, schema] : properties) {
    if (names.size() < required) names.push_back(name);
    out["properties"][name] = std::move(schema);
  }
  out["required"] = std::move(names);
  out["additionalProperties"] = false;
  return out;
}

Json text_schema(const std::string& description) {
  return {{"type", "string"}, {"description", description}};
}

Json list_schema(Json items, const std::string& description) {
  return {{"type", "array"}, {"items", std::move(items)}, {"description", description}};
}

Json integer_schema(const std::string& description, std::int64_t least, std::int64_t most,
                    std::int64_t fallback) {
  return {{"type", "integer"},
          {"description", description},
          {"minimum", least},
          {"maximum", most},
          {"default", fallback}};
}

namespace {

// The place of a key in a schema: "layout.overlap.pp" is a property of a property of `layout`.
Json& property_at(Json& schema, std::string_view path) {
  Json* at = &schema;
  while (true) {
    const std::size_t dot = path.find('.');
    at = &(*at)["properties"][std::string(path.substr(0, dot))];
    if (dot == std::string_view::npos) return *at;
    path.remove_prefix(dot + 1);
  }
}

std::string description_of(const Json& key) {
  std::string out = fmt::format("{}. Accepts {}", key["help"].get<std::string>(),
                                key["value"].get<std::string>());
  const auto fallback = key["default"].get<std::string>();
  return fallback.empty() ? out : fmt::format("{}; default {}", out, fallback);
}

}  // namespace

Json scenario_schema(const api::Data& data) {
  Json out;
  out["type"] = "object";
  out["description"] =
      "What is trained, on what, and how it is laid out. A layout key that is left out has a "
      "default in predict, and is searched by plan and why_not";
  out["properties"]["model"]["description"] =
      "a shipped name (list models), or an object: a Hugging Face config.json";
  out["properties"]["cluster"]["description"] =
      "a shipped name with a number of nodes, as in dgx-h100x8 (list clusters), or an object such "
      "as {\"base\": \"dgx-h100\", \"gpus\": 64}";
  out["properties"]["training"] = {{"type", "object"}};
  out["properties"]["layout"] = {{"type", "object"}};
  out["properties"]["run"] = {
      {"type", "object"},
      {"description", "the whole run, for days and dollars: tokens, deadline_days, budget"}};
  const auto listing = data.list("keys");
  const Json keys = listing ? Json::parse(*listing) : Json::array();
  for (const Json& key : keys) {
    property_at(out, key["key"].get<std::string>())["description"] = description_of(key);
  }
  out["required"] = {"model", "cluster", "training"};
  return out;
}

Json brief_scenario_schema() {
  return {{"type", "object"},
          {"description", "a scenario with the keys that predict lists"},
          {"required", {"model", "cluster", "training"}}};
}

Json set_schema() {
  return {{"type", "object"},
          {"description",
           "keys by their paths, laid over the scenario: {\"layout.tp\": 8, "
           "\"training.precision\": \"fp8\"}"}};
}

}  // namespace stepcast
