// SPDX-License-Identifier: Apache-2.0
// Tells people which keys a document has, from the rows that its structs declare
// (core/json_field.h): path, what is accepted, default, and the row's words.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "core/json_fields.h"
#include "core/text/escape.h"

namespace stepcast {

struct DeclaredKey {
  std::string path;     // "cases.convention.memory", for each element of a list
  std::string accepts;  // "true or false"
  std::string usual;    // "required"; the value without the key; empty: there is none
  std::string words;    // empty: the row has none
};

namespace json_detail {

// The struct that an optional, a list or a map holds; the type itself where it holds none.
template <class Value>
struct Held {
  using Type = Value;
};
template <class Value>
requires requires { typename Value::mapped_type; }
struct Held<Value> : Held<typename Value::mapped_type> {};
template <class Value>
requires(List<Value> && !Mapping<Value>) || kIsOptional<Value> struct Held<Value>
    : Held<typename Value::value_type> {
};

inline std::string accepted_range(const JsonRange& range) {
  constexpr double kUnbounded = 1e9;
  if (range.least < -kUnbounded) return "a number";
  if (range.most == 0 || range.most > kUnbounded) {
    if (range.is_positive || (range.least > 0 && range.least < 1)) return "more than 0";
    return fmt::format("{} or more", range.least);
  }
  if (range.least == range.most) return fmt::format("{}", range.least);
  return fmt::format("{} to {}", range.least < 1e-9 ? 0 : range.least, range.most);
}

template <class Value>
std::string accepted(const JsonRange& range) {
  if constexpr (requires { Value::kAccepts; }) {
    return Value::kAccepts;
  } else if constexpr (std::is_class_v<Value> &&
                       requires(const JsonValue& value, Value& out) { read_json(value, out); }) {
    return "text";
  } else if constexpr (kIsOptional<Value>) {
    return accepted<typename Value::value_type>(range);
  } else if constexpr (kIsTree<Value>) {
    return "JSON";
  } else if constexpr (Declared<Value>) {
    return "an object";
  } else if constexpr (NamedNumbers<Value> || kIsArray<Value>) {
    constexpr std::size_t kFew = 8;
    if (range.names == nullptr) return "a list of numbers";
    return "numbers by name" + (range.names().size() > kFew ? "" : ": " + one_of(range.names()));
  } else if constexpr (Mapping<Value>) {
    return "by name: " + accepted<typename Value::mapped_type>(range);
  } else if constexpr (List<Value>) {
    using Element = typename Value::value_type;
    if constexpr (Declared<Element>) return "a list of objects";
    if constexpr (std::is_same_v<Element, std::string>) return "a list of texts";
    return "a list of " + accepted<Element>(range);
  } else if constexpr (std::is_enum_v<Value>) {
    return one_of(range.names ? range.names() : enum_names<Value>());
  } else {
    if (range.names) return one_of(range.names());
    if constexpr (std::is_same_v<Value, bool>) return "true or false";
    if constexpr (std::is_same_v<Value, std::string>) return "text";
    if constexpr (std::is_same_v<Value, Seconds>) {
      if (range.has_unit) return "a time with its unit";
    }
    return accepted_range(range);
  }
}

template <class Holder, class Value>
std::string usual(const JsonField<Holder, Value>& field) {
  if (field.is_required) return "required";
  if constexpr (std::is_arithmetic_v<Value> || std::is_enum_v<Value>) {
    const Value value = Holder{}.*field.member;
    if constexpr (std::is_arithmetic_v<Value> && !std::is_same_v<Value, bool>) {
      if (static_cast<double>(value) < field.range.least) return "";  // "none" of its own
    }
    if constexpr (std::is_floating_point_v<Value>) return fmt::format("{}", value);
    const Json json = value_json(value, field.range);
    return json.is_string() ? json.get_text() : json_text(json);
  } else {
    return "";
  }
}

template <class Holder>
void add_keys(const std::string& prefix, std::vector<DeclaredKey>& out);

template <class Holder, class Value>
void add_key(const std::string& prefix, const JsonField<Holder, Value>& field,
             std::vector<DeclaredKey>& out) {
  using Inner = typename Held<Value>::Type;
  if (field.key == nullptr) {
    if constexpr (Declared<Inner>) add_keys<Inner>(prefix, out);
    return;
  }
  const std::string path = prefix + field.key;
  if (field.words == nullptr && field.is_there != nullptr) return;  // no file has it
  if (field.words != nullptr || !Declared<Inner>) {
    out.push_back({path, accepted<Value>(field.range), usual(field),
                   field.words == nullptr ? "" : field.words});
  }
  if constexpr (Declared<Inner>) add_keys<Inner>(path + ".", out);
}
inline void add_key(const std::string& prefix, const JsonRemark& remark,
                    std::vector<DeclaredKey>& out) {
  out.push_back({prefix + remark.key, "anything", "", "for people"});
}

template <class Holder>
void add_keys(const std::string& prefix, std::vector<DeclaredKey>& out) {
  std::apply([&](const auto&... field) { (add_key(prefix, field, out), ...); }, Holder::fields());
}

}  // namespace json_detail

// All keys of a document of this struct, each below the struct that holds it.
template <class Holder>
std::vector<DeclaredKey> declared_keys(const std::string& prefix) {
  std::vector<DeclaredKey> out;
  json_detail::add_keys<Holder>(prefix, out);
  return out;
}

}  // namespace stepcast
