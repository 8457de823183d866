// SPDX-License-Identifier: Apache-2.0
// Reads and writes structs that declare their keys (core/json_field.h). A type that is no struct
// with fields has functions of its own beside it:
//
//   bool read_json(const JsonValue& value, Type& out);  // errors go to the value's document
//   Json written_json(const Type& value);
//
// A struct may have `void check(const JsonValue& value) const`, called once it is read, for what
// its keys must be to each other.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/enum_names.h"
#include "core/id.h"
#include "core/json.h"
#include "core/json_field.h"
#include "core/json_tree.h"

namespace stepcast {

template <class Holder>
void read_keys(ObjectReader& reader, Holder& out);
template <class Holder>
Json json_of(const Holder& holder);

namespace json_detail {

template <class Value>
inline constexpr bool kIsOptional = false;
template <class Value>
inline constexpr bool kIsOptional<std::optional<Value>> = true;
template <class Value>
inline constexpr bool kIsArray = false;
template <class Value, std::size_t size>
inline constexpr bool kIsArray<std::array<Value, size>> = true;

template <class Value>
inline constexpr bool kIsId = false;
template <class Tag>
inline constexpr bool kIsId<Id<Tag>> = true;

template <class Value>
concept Declared = requires {
  Value::fields();
};
// Their keys are the names that a field states, in that order.
template <class Value>
concept NamedNumbers = Mapping<Value> && std::is_arithmetic_v<typename Value::mapped_type>;
template <class Value>
concept Quantity = requires(const Value& value) {
  { value.value() } -> std::same_as<double>;
};

template <class Read, class Value>
bool take(Read read, Value& out) {
  if (read) out = static_cast<Value>(std::move(*read));
  return read.has_value();
}

// False where the value is no such one, and then `out` is as it was.
template <class Value>
bool read_value(const JsonValue& value, const JsonRange& range, Value& out);

template <class Value>
bool read_with_unit(const JsonValue& value, Value& out) {
  if constexpr (std::is_same_v<Value, Bytes>) return take(value.bytes(), out);
  if constexpr (std::is_same_v<Value, BytesPerSecond>) return take(value.rate(), out);
  if constexpr (std::is_same_v<Value, Seconds>) return take(value.seconds(), out);
  if constexpr (std::is_same_v<Value, FlopsPerSecond>) return take(value.flops_rate(), out);
}
template <class Value>
std::string text_with_unit(const Value& value) {
  const char* unit = std::is_same_v<Value, Bytes>            ? "B"
                     : std::is_same_v<Value, BytesPerSecond> ? "B/s"
                     : std::is_same_v<Value, Seconds>        ? "s"
                                                             : "FLOP/s";
  return fmt::format("{} {}", value.value(), unit);
}

template <class Value>
bool read_number(const JsonValue& value, const JsonRange& range, Value& out) {
  if constexpr (std::is_integral_v<Value>) {
    constexpr bool kIsSmall = sizeof(Value) < sizeof(std::int64_t);
    const std::int64_t usual =
        kIsSmall ? std::int64_t{std::numeric_limits<std::int32_t>::max()} : ObjectReader::kMaxCount;
    const auto most = range.most == 0 ? usual : static_cast<std::int64_t>(range.most);
    return take(value.integer(static_cast<std::int64_t>(range.least), most), out);
  } else {
    const double most = range.most == 0 ? std::numeric_limits<double>::max() : range.most;
    return take(value.number(range.least, most), out);
  }
}

template <class Value>
bool read_array(const JsonValue& value, const JsonRange& range, Value& out) {
  if (range.names != nullptr) {
    ObjectReader reader(value);
    const JsonRange each{range.least, range.most};
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto one = reader.value(range.names()[i]);
      if (one) read_value(*one, each, out[i]);
    }
    reader.finish();
    return true;
  }
  const auto items = value.items();
  if (items.size() != out.size()) {
    value.fail(ErrorCode::kBadValue, std::to_string(items.size()) + " numbers where " +
                                         std::to_string(out.size()) + " are due");
    return false;
  }
  for (std::size_t i = 0; i < out.size(); ++i) read_value(items[i], range, out[i]);
  return true;
}

template <class Value>
bool read_value(const JsonValue& value, const JsonRange& range, Value& out) {
  if constexpr (std::is_class_v<Value> && requires { read_json(value, out); }) {
    return read_json(value, out);
  } else if constexpr (Declared<Value>) {
    ObjectReader reader(value);
    read_keys(reader, out);
    reader.finish();
    if constexpr (requires { out.check(value); }) out.check(value);
    return true;
  } else if constexpr (kIsOptional<Value>) {
    typename Value::value_type inner{};
    const bool read = read_value(value, range, inner);
    if (read) out = std::move(inner);
    return read;
  } else if constexpr (kIsTree<Value>) {
    out = value.raw();
    return true;
  } else if constexpr (std::is_same_v<Value, bool>) {
    return range.names ? take(value.choice(range.names()), out) : take(value.boolean(), out);
  } else if constexpr (std::is_same_v<Value, std::string>) {
    if (range.names == nullptr) return take(value.text(), out);
    const auto name = value.choice(range.names());
    if (name) out = range.names()[*name];
    return name.has_value();
  } else if constexpr (std::is_enum_v<Value>) {
    return take(value.choice(range.names ? range.names() : enum_names<Value>()), out);
  } else if constexpr (std::is_arithmetic_v<Value>) {
    if (range.names != nullptr && std::is_integral_v<Value>) {
      return take(value.choice(range.names()), out);
    }
    return read_number(value, range, out);
  } else if constexpr (kIsId<Value>) {
    return read_number(value, range, out.value);
  } else if constexpr (Quantity<Value>) {
    Value quantity{};
    double number = 0;
    const bool read =
        range.has_unit ? read_with_unit(value, quantity) : read_number(value, range, number);
    if (read) out = range.has_unit ? quantity : Value(number);
    if (read && range.is_positive && !(out.value() > 0)) {
      value.fail(ErrorCode::kBadValue, "0 is out of range", "more than 0");
    }
    return read;
  } else if constexpr (kIsArray<Value>) {
    return read_array(value, range, out);
  } else if constexpr (NamedNumbers<Value>) {
    ObjectReader reader(value);
    for (const std::string& name : range.names()) {
      if (const auto one = reader.value(name)) read_value(*one, range, out[name]);
    }
    reader.finish();
    return true;
  } else if constexpr (Mapping<Value>) {
    for (const auto& [key, member] : value.members()) read_value(member, range, out[key]);
    return true;
  } else {
    for (const JsonValue& item : value.items()) {
      typename Value::value_type one{};
      read_value(item, range, one);
      out.insert(out.end(), std::move(one));
    }
    return true;
  }
}

template <class Value>
Json value_json(const Value& value, const JsonRange& range) {
  const JsonNames names = range.names;
  if constexpr (std::is_class_v<Value> && requires { written_json(value); }) {
    return written_json(value);
  } else if constexpr (Declared<Value>) {
    return json_of(value);
  } else if constexpr (kIsOptional<Value>) {
    return value ? value_json(*value, range) : Json();
  } else if constexpr (std::is_enum_v<Value>) {
    return names ? names()[static_cast<std::size_t>(value)]
                 : enum_names<Value>()[static_cast<std::size_t>(value)];
  } else if constexpr (std::is_integral_v<Value>) {
    return names ? Json(names()[static_cast<std::size_t>(value)]) : Json(value);
  } else if constexpr (kIsId<Value>) {
    return value.value;
  } else if constexpr (Quantity<Value>) {
    return range.has_unit ? Json(text_with_unit(value)) : Json(value.value());
  } else if constexpr (NamedNumbers<Value>) {
    Json out = Json::object();
    for (const std::string& name : names()) {
      if (const auto one = value.find(name); one != value.end()) out[name] = one->second;
    }
    return out;
  } else if constexpr (Mapping<Value>) {
    Json out = Json::object();
    for (const auto& [key, one] : value) out[key] = value_json(one, range);
    return out;
  } else if constexpr (List<Value>) {
    Json out = names ? Json::object() : Json::array();
    std::size_t place = 0;
    for (const auto& one : value) {
      Json json = value_json(one, {});
      if (names) {
        out[names()[place++]] = std::move(json);
      } else {
        out.push_back(std::move(json));
      }
    }
    return out;
  } else {
    return value;
  }
}

// Keys that stand beside those of the holder. An optional is there where its first key is.
template <class Value>
void read_beside(ObjectReader& reader, Value& out) {
  if constexpr (Declared<Value>) {
    read_keys(reader, out);
  } else if constexpr (kIsOptional<Value>) {
    if constexpr (Declared<typename Value::value_type>) {
      const char* first = std::get<0>(Value::value_type::fields()).key;
      if (reader.has(first)) read_keys(reader, out.emplace());
    }
  }
}

template <class Holder, class Value>
void read_field(ObjectReader& reader, const JsonField<Holder, Value>& field, Holder& out) {
  if (field.is_there && !field.is_there(out)) return;
  if (field.key == nullptr) {
    read_beside(reader, out.*field.member);
    return;
  }
  const auto value = field.is_required ? reader.required(field.key) : reader.value(field.key);
  if (value) read_value(*value, field.range, out.*field.member);
}

template <class Holder>
void read_field(ObjectReader& reader, const JsonRemark& remark, Holder&) {
  reader.ignore(remark.key);
}
template <class Holder>
void write_field(const Holder&, const JsonRemark&, Json&) {}

template <class Holder, class Value>
void write_field(const Holder& holder, const JsonField<Holder, Value>& field, Json& out) {
  if (field.is_there && !field.is_there(holder)) return;
  const Value& value = holder.*field.member;
  if constexpr (kIsOptional<Value>) {
    if (!value) return;
  }
  if (field.key == nullptr) {
    out.update(value_json(value, {}));
    return;
  }
  if constexpr (std::default_initializable<Holder>) {
    if (field.is_usual && field.is_usual(value, Holder{}.*field.member)) return;
  }
  out[field.key] = value_json(value, field.range);
}

}  // namespace json_detail

// The keys that the object has, over what `out` holds. The caller calls reader.finish().
template <class Holder>
void read_keys(ObjectReader& reader, Holder& out) {
  std::apply([&](const auto&... field) { (json_detail::read_field(reader, field, out), ...); },
             Holder::fields());
}

// Reads all of an object. Errors go to the value's document.
template <class Holder>
Holder read_object(const JsonValue& value) {
  Holder out{};
  json_detail::read_value(value, {}, out);
  return out;
}

template <class Holder>
Json json_of(const Holder& holder) {
  Json out = Json::object();
  std::apply([&](const auto&... field) { (json_detail::write_field(holder, field, out), ...); },
             Holder::fields());
  return out;
}

}  // namespace stepcast
