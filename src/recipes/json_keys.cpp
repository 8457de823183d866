// SPDX-License-Identifier: Apache-2.0
#include "recipes/json_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/gathered_errors.h"
#include "core/json_tree.h"
#include "core/parse_json.h"
#include "core/text/escape.h"

namespace stepcast {
namespace {

constexpr double kMaxCount = 1099511627776.0;  // 2^40

const SortedJson& empty_object() {
  static const SortedJson empty = SortedJson::object();
  return empty;
}

}  // namespace

SortedJson parse_json_object(const std::string& text, bool comments, ImportedScenario& imported) {
  auto document = parse_json(text, imported.file, {.comments = comments});
  if (!document) {
    append(imported.errors, document.error());
    return {};
  }
  if (document->is_object()) return std::move(*document);
  imported.fail(ErrorCode::kSyntax, "", "is not a JSON object");
  return {};
}

JsonKeys::JsonKeys(const SortedJson& object, std::string path, ImportedScenario& imported)
    : object_(object.is_object() ? &object : &empty_object()),
      path_(std::move(path)),
      imported_(&imported) {}

std::string JsonKeys::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

const SortedJson* JsonKeys::value(const char* key) {
  asked_.insert(key);
  const auto found = object_->find(key);
  if (found == object_->end() || found->is_null()) return nullptr;
  if (*found == "auto") {
    said_auto_ = true;
    return nullptr;
  }
  return &*found;
}

void JsonKeys::wrong(const char* key, const SortedJson& value, const char* accepted) {
  imported_->fail(ErrorCode::kWrongType, path_of(key),
                  fmt::format("{} is not {}", json_text(value), accepted));
}

bool JsonKeys::has(const char* key) { return value(key) != nullptr; }

const SortedJson* JsonKeys::raw(const char* key) { return value(key); }

// 5e8 is a whole number too.
std::optional<std::int64_t> JsonKeys::integer(const char* key, std::int64_t min) {
  const SortedJson* found = value(key);
  if (!found) return std::nullopt;
  const double number = found->is_number() ? found->get<double>() : std::nan("");
  if (!(number >= static_cast<double>(min) && number <= kMaxCount) ||
      number != std::floor(number)) {
    wrong(key, *found, fmt::format("a whole number of at least {}", min).c_str());
    return std::nullopt;
  }
  return static_cast<std::int64_t>(number);
}

std::optional<double> JsonKeys::number(const char* key) {
  const SortedJson* found = value(key);
  if (!found) return std::nullopt;
  if (found->is_number()) return found->get<double>();
  wrong(key, *found, "a number");
  return std::nullopt;
}

std::optional<bool> JsonKeys::boolean(const char* key) {
  const SortedJson* found = value(key);
  if (!found) return std::nullopt;
  if (found->is_boolean()) return found->get<bool>();
  wrong(key, *found, "true or false");
  return std::nullopt;
}

std::optional<std::string> JsonKeys::text(const char* key) {
  const SortedJson* found = value(key);
  if (!found) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  wrong(key, *found, "text");
  return std::nullopt;
}

std::optional<std::string> JsonKeys::choice(const char* key,
                                            const std::vector<std::string>& names) {
  const auto found = text(key);
  if (!found) return std::nullopt;
  if (std::find(names.begin(), names.end(), *found) != names.end()) return found;
  const std::string near = did_you_mean(*found, names);
  imported_->fail(ErrorCode::kBadValue, path_of(key), fmt::format("'{}' is not accepted", *found),
                  "one of " + one_of(names) + (near.empty() ? "" : "; " + near));
  return std::nullopt;
}

void JsonKeys::set_count(const char* path, const char* key) {
  if (const auto count = integer(key, 1)) imported_->set_integer(path, *count, path_of(key));
}

JsonKeys JsonKeys::section(const char* key) {
  const SortedJson* found = value(key);
  if (found && !found->is_object()) wrong(key, *found, "an object");
  return {found ? *found : empty_object(), path_of(key), *imported_};
}

void JsonKeys::without_effect(std::span<const char* const> keys) {
  for (const char* key : keys) {
    if (object_->contains(key) && asked_.count(key) == 0) {
      imported_->without_effect.push_back(path_of(key));
    }
    asked_.insert(key);
  }
}

void JsonKeys::may_change_cost() {
  for (const auto& [key, value] : object_->items()) {
    if (asked_.count(key) > 0) continue;
    imported_->warnings.push_back(path_of(key) +
                                  " is not in a scenario, and may change the cost of a step");
  }
}

}  // namespace stepcast
