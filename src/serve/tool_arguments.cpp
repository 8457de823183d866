// SPDX-License-Identifier: Apache-2.0
#include "serve/tool_arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/gathered_errors.h"
#include "core/json_tree.h"
#include "core/text/escape.h"

namespace stepcast {

ToolArguments::ToolArguments(const api::Data& data, const Json& arguments)
    : data_(data), arguments_(arguments) {
  if (!arguments.is_object()) fail("arguments", "is no object", "{\"scenario\": {...}}");
}

const Json* ToolArguments::find(const char* name) {
  asked_.emplace_back(name);
  if (!arguments_.is_object()) return nullptr;
  const auto found = arguments_.find(name);
  return found == arguments_.end() || found->is_null() ? nullptr : &*found;
}

void ToolArguments::fail(const std::string& name, std::string message, std::string hint,
                         ErrorCode code) {
  errors_.push_back({code, std::move(message), "", name, std::move(hint)});
}

std::string ToolArguments::text(const char* name, const std::string& fallback) {
  const Json* value = find(name);
  if (value == nullptr) return fallback;
  if (value->is_string()) return value->get<std::string>();
  fail(name, "is no text", "a text such as \"" + fallback + "\"", ErrorCode::kWrongType);
  return fallback;
}

std::optional<std::string> ToolArguments::required_text(const char* name) {
  const Json* value = find(name);
  if (value != nullptr && value->is_string()) return value->get<std::string>();
  fail(name, value == nullptr ? "is required" : "is no text", "a text",
       value == nullptr ? ErrorCode::kMissingKey : ErrorCode::kWrongType);
  return std::nullopt;
}

std::int64_t ToolArguments::integer(const char* name, std::int64_t fallback, std::int64_t least,
                                    std::int64_t most) {
  const Json* value = find(name);
  if (value == nullptr) return fallback;
  if (value->is_number_integer()) {
    const auto number = value->get<std::int64_t>();
    if (number >= least && number <= most) return number;
  }
  fail(name, fmt::format("{} is out of range", json_text(*value).substr(0, 60)),
       fmt::format("a whole number from {} to {}", least, most));
  return fallback;
}

bool ToolArguments::boolean(const char* name, bool fallback) {
  const Json* value = find(name);
  if (value == nullptr) return fallback;
  if (value->is_boolean()) return value->get<bool>();
  fail(name, "is neither true nor false", "true or false", ErrorCode::kWrongType);
  return fallback;
}

std::vector<std::string> ToolArguments::texts(const char* name) {
  const Json* value = find(name);
  std::vector<std::string> out;
  if (value == nullptr) return out;
  const bool all_text = value->is_array() && std::ranges::all_of(*value, [](const auto& one) {
                          return one.is_string();
                        });
  if (!all_text) {
    fail(name, "is no list of texts", "[\"...\"]", ErrorCode::kWrongType);
    return out;
  }
  for (const Json& one : *value) out.push_back(one.get<std::string>());
  return out;
}

std::map<std::string, std::string> ToolArguments::keys(const char* name) {
  const Json* value = find(name);
  std::map<std::string, std::string> out;
  if (value == nullptr) return out;
  if (!value->is_object()) {
    fail(name, "is no object", "keys and values, as in {\"tp\": 4}", ErrorCode::kWrongType);
    return out;
  }
  for (const auto& [key, one] : value->items()) {
    out[key] = one.is_string() ? one.get<std::string>() : json_text(one);
  }
  return out;
}

std::optional<api::Scenario> ToolArguments::read_scenario(const std::string& path,
                                                          const Json& value,
                                                          const std::string& name) {
  if (!value.is_object()) {
    fail(path, "is no object", "{\"model\": ..., \"cluster\": ..., \"training\": {...}}",
         ErrorCode::kWrongType);
    return std::nullopt;
  }
  Json stated = value;
  if (!stated.contains("stepcast")) stated["stepcast"] = 1;  // the format's number
  auto scenario = api::Scenario::parse(data_, json_text(stated), name);
  if (!scenario) {
    append(errors_, scenario.error());
    return std::nullopt;
  }
  return std::move(*scenario);
}

std::optional<api::Scenario> ToolArguments::scenario() {
  const Json* value = find("scenario");
  const auto changes = keys("set");
  if (value == nullptr) {
    fail("scenario", "is required", "{\"model\": ..., \"cluster\": ..., \"training\": {...}}",
         ErrorCode::kMissingKey);
    return std::nullopt;
  }
  auto out = read_scenario("scenario", *value, "scenario");
  for (const auto& [path, text] : changes) {
    if (!out) break;
    auto changed = out->with(path, text);
    if (!changed) {
      append(errors_, changed.error());
      return std::nullopt;
    }
    out = std::move(*changed);
  }
  return out;
}

std::vector<api::Scenario> ToolArguments::scenarios(std::size_t most) {
  const Json* value = find("scenarios");
  std::vector<api::Scenario> out;
  const std::string hint = fmt::format("2 to {} of {{\"name\": ..., \"scenario\": {{...}}}}", most);
  if (value == nullptr || !value->is_array() || value->size() < 2 || value->size() > most) {
    fail("scenarios", "is no list of that length", hint);
    return out;
  }
  for (std::size_t i = 0; i < value->size(); ++i) {
    const Json& one = (*value)[i];
    const std::string path = fmt::format("scenarios[{}]", i);
    const bool whole = one.is_object() && one.contains("name") && one["name"].is_string() &&
                       one.contains("scenario");
    if (!whole) {
      fail(path, "has no name or no scenario", hint);
      continue;
    }
    auto scenario =
        read_scenario(path + ".scenario", one["scenario"], one["name"].get<std::string>());
    if (scenario) out.push_back(std::move(*scenario));
  }
  return out;
}

Errors ToolArguments::errors() {
  if (arguments_.is_object()) {
    for (const auto& [name, unused] : arguments_.items()) {
      if (std::ranges::find(asked_, name) != asked_.end()) continue;
      const std::string near = did_you_mean(name, asked_);
      fail(name, "is not an argument of this tool", near.empty() ? "use " + one_of(asked_) : near,
           ErrorCode::kUnknownKey);
    }
  }
  return errors_;
}

}  // namespace stepcast
