// SPDX-License-Identifier: Apache-2.0
#include "layout/override.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/limits.h"
#include "core/parse_json.h"

namespace stepcast {
namespace {

using nlohmann::json;

Error bad_path(std::string_view path, std::string message) {
  return {ErrorCode::kBadValue, std::move(message), "", std::string(path),
          "a key path, as in layout.tp=8"};
}

// A script or a shell may give bytes that are no UTF-8, and JSON holds nothing else.
std::string whole_characters(std::string_view text) {
  const std::string valid =
      json(std::string(text)).dump(-1, ' ', false, json::error_handler_t::replace);
  return json::parse(valid).get<std::string>();
}

// "layout.tp" in parts; none of them may be empty.
std::optional<std::vector<std::string>> split(std::string_view path) {
  std::vector<std::string> keys;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    if (end == begin) return std::nullopt;
    keys.emplace_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return keys;
}

}  // namespace

Errors apply_override(json& document, std::string_view path, std::string_view value) {
  const auto keys = split(path);
  if (!keys) return {bad_path(path, fmt::format("'{}' is not a key path", path))};
  if (keys->size() > kDeepestDocument) {
    return {bad_path(path, fmt::format("a key path of {} parts", keys->size()))};
  }
  auto parsed = parse_json(value, "");
  if (!parsed) {
    if (value.starts_with('{') || value.starts_with('[')) {
      return {{ErrorCode::kSyntax, fmt::format("{}: {}", value, parsed.error().front().message), "",
               std::string(path), "quote it for the shell"}};
    }
    parsed = json(whole_characters(value));
  }
  json* node = &document;
  for (std::size_t i = 0; i < keys->size(); ++i) {
    if (node->is_null()) *node = json::object();
    if (!node->is_object()) {
      return {bad_path(
          path, fmt::format("'{}' is not an object",
                            fmt::join(keys->begin(), keys->begin() + static_cast<std::ptrdiff_t>(i),
                                      ".")))};
    }
    node = &(*node)[(*keys)[i]];
  }
  *node = std::move(*parsed);
  return {};
}

}  // namespace stepcast
