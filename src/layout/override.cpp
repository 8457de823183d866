// SPDX-License-Identifier: Apache-2.0
#include "layout/override.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace stepcast {
namespace {

using nlohmann::json;

Error bad_path(std::string_view path, std::string message) {
  return {ErrorCode::kBadValue, std::move(message), "", std::string(path),
          "a key path, as in layout.tp=8"};
}

}  // namespace

Errors apply_override(json& document, std::string_view path, std::string_view value) {
  if (path.empty()) return {bad_path(path, "the key path is empty")};
  json parsed = json::parse(value, nullptr, false);
  if (parsed.is_discarded()) {
    if (value.starts_with('{') || value.starts_with('[')) {
      return {{ErrorCode::kSyntax, fmt::format("{} is not valid JSON", value), "",
               std::string(path), "quote it for the shell"}};
    }
    parsed = std::string(value);
  }
  json* node = &document;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const std::string key(path.substr(begin, end - begin));
    if (key.empty()) return {bad_path(path, fmt::format("'{}' has an empty part", path))};
    if (node->is_null()) *node = json::object();
    if (!node->is_object()) {
      const std::string_view above = path.substr(0, begin == 0 ? 0 : begin - 1);
      return {bad_path(path, fmt::format("'{}' is not an object", above))};
    }
    node = &(*node)[key];
    begin = end + 1;
  }
  *node = std::move(parsed);
  return {};
}

}  // namespace stepcast
