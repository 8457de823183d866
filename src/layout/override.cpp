// SPDX-License-Identifier: Apache-2.0
#include "layout/override.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "core/json_tree.h"
#include "core/limits.h"
#include "core/parse_json.h"
#include "core/text/characters.h"

namespace stepcast {
namespace {

Error bad_path(std::string_view path, std::string message) {
  return {ErrorCode::kBadValue, std::move(message), "", std::string(path),
          "a key path, as in layout.tp=8"};
}

Error not_utf8(std::string_view path, std::string_view value) {
  return {ErrorCode::kBadValue, fmt::format("'{}' is not UTF-8", shortened(value, kLongestQuote)),
          "", std::string(path),
          "a scenario is JSON, which is UTF-8: give the file or the name another name"};
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

Errors apply_override(SortedJson& document, std::string_view path, std::string_view value) {
  const auto keys = split(path);
  if (!keys) {
    return {bad_path(path, fmt::format("'{}' is not a key path", shortened(path, kLongestQuote)))};
  }
  if (keys->size() > kDeepestDocument) {
    return {bad_path(path, fmt::format("a key path of {} parts", keys->size()))};
  }
  auto parsed = parse_json(value, "");
  const bool blank = value.starts_with(' ') || value.ends_with(' ');
  // "2.30" is a version, and no number.
  const bool is_version = path == "software.nccl";
  if (parsed && parsed->is_number() && (blank || is_version))
    parsed = SortedJson(std::string(value));
  if (!parsed) {
    if (!is_utf8(value)) return {{not_utf8(path, value)}};
    if (value.starts_with('{') || value.starts_with('[')) {
      return {
          {ErrorCode::kSyntax,
           fmt::format("{}: {}", parsed.error().front().message, shortened(value, kLongestQuote)),
           "", std::string(path), "quote it for the shell"}};
    }
    parsed = SortedJson(std::string(value));
  }
  SortedJson* node = &document;
  for (std::size_t i = 0; i < keys->size(); ++i) {
    if (node->is_null()) *node = SortedJson::object();
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
