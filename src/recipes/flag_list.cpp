// SPDX-License-Identifier: Apache-2.0
#include "recipes/flag_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace stepcast {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 40;

bool is_flag(std::string_view word) { return word.size() > 2 && word.starts_with("--"); }

}  // namespace

FlagList::FlagList(const std::vector<std::string>& words, ImportedScenario& imported)
    : imported_(imported) {
  for (const std::string& word : words) {
    if (!is_flag(word)) {
      if (!flags_.empty()) flags_.back().values.push_back(word);
      continue;
    }
    const std::size_t equals = word.find('=');
    flags_.push_back({word.substr(0, equals), {}, false});
    if (equals != std::string::npos) flags_.back().values.push_back(word.substr(equals + 1));
  }
}

FlagList::Flag* FlagList::find(std::string_view name) {
  Flag* found = nullptr;
  for (Flag& flag : flags_) {
    if (flag.name != name) continue;
    flag.asked = true;
    found = &flag;
  }
  return found;
}

bool FlagList::has(std::string_view name) const {
  return std::any_of(flags_.begin(), flags_.end(), [&](const Flag& f) { return f.name == name; });
}

bool FlagList::given(std::string_view name) { return find(name) != nullptr; }

std::optional<std::string> FlagList::one_value(std::string_view name) {
  const Flag* flag = find(name);
  if (!flag) return std::nullopt;
  const std::string key(name);
  if (flag->values.empty()) {
    imported_.fail(ErrorCode::kMissingKey, key, "has no value");
    return std::nullopt;
  }
  const std::string& value = flag->values.front();
  if (value.find("${") != std::string::npos || value.find("$(") != std::string::npos) {
    const std::size_t open = value.find("${");
    const std::size_t close = std::min(value.find('}'), value.size());
    const std::string variable =
        open == std::string::npos ? "" : value.substr(open + 2, close - open - 2);
    imported_.fail(
        ErrorCode::kBadValue, key, fmt::format("'{}' is not set in the file", value),
        variable.empty() ? "write the value itself" : fmt::format("--variable {}=VALUE", variable));
    return std::nullopt;
  }
  return value;
}

std::optional<std::string> FlagList::text(std::string_view name) { return one_value(name); }

std::optional<std::int64_t> FlagList::integer(std::string_view name, std::int64_t min) {
  const auto text = one_value(name);
  if (!text) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < min ||
      value > kLargest) {
    imported_.fail(ErrorCode::kBadValue, std::string(name), fmt::format("'{}' is no count", *text),
                   fmt::format("a whole number of at least {}", min));
    return std::nullopt;
  }
  return value;
}

std::optional<double> FlagList::number(std::string_view name) {
  const auto text = one_value(name);
  if (!text) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size()) {
    imported_.fail(ErrorCode::kBadValue, std::string(name),
                   fmt::format("'{}' is no number", *text));
    return std::nullopt;
  }
  return value;
}

std::vector<std::string> FlagList::values(std::string_view name) {
  const Flag* flag = find(name);
  return flag ? flag->values : std::vector<std::string>{};
}

std::optional<std::string> FlagList::choice(std::string_view name,
                                            const std::vector<std::string>& names) {
  const auto text = one_value(name);
  if (!text) return std::nullopt;
  if (std::find(names.begin(), names.end(), *text) != names.end()) return text;
  const std::string near = did_you_mean(*text, names);
  imported_.fail(ErrorCode::kBadValue, std::string(name),
                 fmt::format("'{}' is not accepted", *text),
                 "one of " + one_of(names) + (near.empty() ? "" : "; " + near));
  return std::nullopt;
}

std::vector<std::string> FlagList::unasked() const {
  std::vector<std::string> out;
  for (const Flag& flag : flags_) {
    if (!flag.asked && std::find(out.begin(), out.end(), flag.name) == out.end()) {
      out.push_back(flag.name);
    }
  }
  return out;
}

}  // namespace stepcast
