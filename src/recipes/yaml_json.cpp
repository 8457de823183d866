// SPDX-License-Identifier: Apache-2.0
#include "recipes/yaml_json.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <charconv>
#include <cmath>
#include <optional>

#include "core/json_tree.h"
#include "core/limits.h"
#include "core/text/escape.h"

namespace stepcast {
namespace {

constexpr std::size_t kMostNodes = 100000;
constexpr int kMostReferences = 8;  // of one value to the next

// A word without quotes, by YAML 1.1 as PyYAML reads it.
SortedJson typed_word(const std::string& word) {
  if (word.empty() || word == "~" || word == "null" || word == "Null" || word == "NULL") return {};
  for (const char* yes : {"true", "True", "TRUE", "yes", "Yes", "on", "On"}) {
    if (word == yes) return true;
  }
  for (const char* no : {"false", "False", "FALSE", "no", "No", "off", "Off"}) {
    if (word == no) return false;
  }
  const char* end = word.data() + word.size();
  std::int64_t whole = 0;
  if (const auto [at, bad] = std::from_chars(word.data(), end, whole);
      bad == std::errc() && at == end) {
    return whole;
  }
  double number = 0;
  if (const auto [at, bad] = std::from_chars(word.data(), end, number);
      bad == std::errc() && at == end && std::isfinite(number)) {
    return number;
  }
  return word;
}

class YamlConverter {
 public:
  Result<SortedJson> convert(const YAML::Node& node, const std::string& file) {
    SortedJson out = at(node, 0);
    if (nodes_ > kMostNodes) return refused(file, "unfolds to too many values");
    if (is_deep_) {
      return refused(file, fmt::format("nests deeper than {} levels", kDeepestDocument));
    }
    return out;
  }

 private:
  static Result<SortedJson> refused(const std::string& file, std::string why) {
    return failure(
        {ErrorCode::kSyntax, std::move(why), file, "", "no file of this kind has so much"});
  }

  SortedJson at(const YAML::Node& node, std::size_t depth) {
    is_deep_ = is_deep_ || depth > kDeepestDocument;
    if (is_deep_ || ++nodes_ > kMostNodes) return {};
    if (node.IsScalar()) {
      const bool quoted = node.Tag() == "!";
      return quoted ? SortedJson(node.Scalar()) : typed_word(node.Scalar());
    }
    if (node.IsSequence()) {
      SortedJson out = SortedJson::array();
      for (const YAML::Node& item : node) out.push_back(at(item, depth + 1));
      return out;
    }
    if (!node.IsMap()) return {};
    SortedJson out = SortedJson::object();
    for (const auto& entry : node) {
      if (entry.first.IsScalar()) out[entry.first.Scalar()] = at(entry.second, depth + 1);
    }
    return out;
  }

  std::size_t nodes_ = 0;
  bool is_deep_ = false;
};

const SortedJson* find_path(const SortedJson& root, std::string_view path) {
  const SortedJson* out = &root;
  while (!path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    const std::string key(path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
    if (!out->is_object() || !out->contains(key)) return nullptr;
    out = &(*out)[key];
  }
  return out;
}

// The value of a text that begins with a reference, which may go on behind it; nothing for a text
// without one, or of a key that is not there.
std::optional<SortedJson> referred(const SortedJson& root, const std::string& text) {
  const std::size_t begin = text.find("${");
  const std::size_t end = text.find('}', begin == std::string::npos ? 0 : begin);
  if (begin == std::string::npos || end == std::string::npos) return std::nullopt;
  const std::string inside = text.substr(begin + 2, end - begin - 2);
  SortedJson value;
  if (const std::size_t colon = inside.find(':'); colon != std::string::npos) {
    value = typed_word(inside.substr(colon + 1));
  } else if (const SortedJson* found = find_path(root, inside)) {
    value = *found;
  } else {
    return std::nullopt;
  }
  const std::string before = text.substr(0, begin), after = text.substr(end + 1);
  if (before.empty() && after.empty()) return value;
  if (value.is_object() || value.is_array()) return std::nullopt;
  return before + (value.is_string() ? value.get<std::string>() : json_text(value)) + after;
}

void resolve_references(const SortedJson& root, SortedJson& value) {
  if (value.is_object() || value.is_array()) {
    for (SortedJson& one : value) resolve_references(root, one);
    return;
  }
  for (int i = 0; i < kMostReferences && value.is_string(); ++i) {
    auto next = referred(root, value.get<std::string>());
    if (!next || next->is_object() || next->is_array()) return;
    value = std::move(*next);
  }
}

}  // namespace

Result<SortedJson> yaml_to_json(const std::string& text, const std::string& file) {
  try {
    auto out = YamlConverter().convert(YAML::Load(text), file);
    if (!out) return out;
    const SortedJson root = *out;
    resolve_references(root, *out);
    return out;
  } catch (const YAML::Exception& error) {
    return failure({ErrorCode::kSyntax, fmt::format("is not YAML: {}", error.msg), file,
                    error.mark.is_null() ? "" : fmt::format("line {}", error.mark.line + 1),
                    "mend the line, or say --from FORMAT of a file that is no YAML"});
  }
}

}  // namespace stepcast
