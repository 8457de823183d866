// SPDX-License-Identifier: Apache-2.0
// The types of values that keys have, each made from the field that holds it.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "layout/choices.h"
#include "layout/keys.h"

namespace stepcast {

inline constexpr std::int64_t kMostInKey = 1 << 20;  // a million ranks, layers or chunks

// The field of the settings that a member pointer names.
template <class T>
auto& field(auto& settings, T Training::*member) {
  return settings.training.*member;
}
template <class T>
auto& field(auto& settings, T Layout::*member) {
  return settings.layout.*member;
}
template <class T>
auto& field(auto& settings, T FrameworkRules::*member) {
  return settings.rules.*member;
}
template <class T>
auto& field(auto& settings, T OuterSteps::*member) {
  return settings.training.outer.*member;
}
template <class T>
auto& field(auto& settings, T Overlap::*member) {
  return settings.layout.overlap.*member;
}
template <class T>
auto& field(auto& settings, T Offload::*member) {
  return settings.layout.offload.*member;
}

template <auto member>
void copy_field(const Settings& from, Settings& to) {
  field(to, member) = field(from, member);
}
void write_json(std::int64_t value, SortedJson& out);
void write_json(int value, SortedJson& out);
void write_json(bool value, SortedJson& out);
void write_json(double value, SortedJson& out);
void write_json(const char* value, SortedJson& out);
void write_json(const std::string& value, SortedJson& out);
void write_json(const std::vector<std::int64_t>& value, SortedJson& out);

template <auto member>
void write_field(const Settings& settings, SortedJson& out) {
  write_json(field(settings, member), out);
}
template <auto member>
void write_name(const Settings& settings, SortedJson& out) {
  write_json(name_of(field(settings, member)), out);
}

// The enumerators that a list of words names, each once. `names` has the words in their order;
// unknown(item, word) reports what is none of them.
template <class Enum, class Unknown>
std::vector<Enum> read_names(const JsonValue& list, const std::vector<std::string>& names,
                             const Unknown& unknown) {
  std::vector<Enum> out;
  for (const JsonValue& item : list.items()) {
    const auto name = item.text();
    if (!name) continue;
    const auto found = std::ranges::find(names, *name);
    const auto value = static_cast<Enum>(found - names.begin());
    if (found == names.end()) {
      unknown(item, *name);
    } else if (std::ranges::find(out, value) != out.end()) {
      item.fail(ErrorCode::kBadValue, fmt::format("'{}' stands twice", *name), "keep one of them");
    } else {
      out.push_back(value);
    }
  }
  return out;
}
template <class Enum>
std::vector<std::string> names_of(const std::vector<Enum>& values) {
  std::vector<std::string> out;
  for (const Enum value : values) out.emplace_back(name_of(value));
  return out;
}

// A whole number from `least` to `most`.
template <auto member, std::int64_t least, std::int64_t most = ObjectReader::kMaxCount>
inline constexpr KeyType kCount = {
    [](ObjectReader& object, const char* key, Settings& out) {
      const auto value = object.integer(key, least, most);
      using Field = std::remove_reference_t<decltype(field(out, member))>;
      if (value) field(out, member) = static_cast<Field>(*value);
      return value.has_value();
    },
    write_field<member>, copy_field<member>,
    [] {
      const bool open = most >= kMostInKey;
      return open ? fmt::format("{} or more", least) : fmt::format("{} to {}", least, most);
    }};

// Tokens of a sequence: a whole number, or text in units of 1024 ("8k") or 1024^2 ("1M").
std::optional<std::int64_t> read_tokens(ObjectReader& object, const char* key, std::int64_t least,
                                        std::int64_t most);

template <auto member, std::int64_t least, std::int64_t most>
inline constexpr KeyType kTokens = {[](ObjectReader& object, const char* key, Settings& out) {
                                      const auto value = read_tokens(object, key, least, most);
                                      if (value) field(out, member) = *value;
                                      return value.has_value();
                                    },
                                    write_field<member>, copy_field<member>,
                                    [] { return fmt::format("{} to {}, or \"8k\"", least, most); }};

template <auto member>
inline constexpr KeyType kTruth = {[](ObjectReader& object, const char* key, Settings& out) {
                                     const auto value = object.boolean(key);
                                     if (value) field(out, member) = *value;
                                     return value.has_value();
                                   },
                                   write_field<member>, copy_field<member>,
                                   [] { return std::string("true or false"); }};

template <auto member>
inline constexpr KeyType kFraction = {[](ObjectReader& object, const char* key, Settings& out) {
                                        const auto value = object.number(key, 0, 1);
                                        if (value) field(out, member) = *value;
                                        return value.has_value();
                                      },
                                      write_field<member>, copy_field<member>,
                                      [] { return std::string("0 to 1"); }};

template <auto member>
inline constexpr KeyType kText = {[](ObjectReader& object, const char* key, Settings& out) {
                                    const auto value = object.text(key);
                                    if (value) field(out, member) = *value;
                                    return value.has_value();
                                  },
                                  write_field<member>, copy_field<member>,
                                  [] { return std::string("text"); }};

// One of `names()`, kept as the word itself.
template <auto member, auto names>
inline constexpr KeyType kWord = {[](ObjectReader& object, const char* key, Settings& out) {
                                    const auto found = object.choice(key, names());
                                    if (found) field(out, member) = names()[*found];
                                    return found.has_value();
                                  },
                                  write_field<member>, copy_field<member>,
                                  [] { return one_of(names()); }};

// One of `names()`, which are in the order of the field's enumerators.
template <auto member, auto names>
inline constexpr KeyType kChoice = {
    [](ObjectReader& object, const char* key, Settings& out) {
      const auto found = object.choice(key, names());
      using Field = std::remove_reference_t<decltype(field(out, member))>;
      if (found) field(out, member) = static_cast<Field>(*found);
      return found.has_value();
    },
    write_name<member>, copy_field<member>, [] { return one_of(names()); }};

}  // namespace stepcast
