// SPDX-License-Identifier: Apache-2.0
// Makes the rows of a struct (core/rows.h) from its members, in the struct's .cpp alone:
//
//   Rows Ends::fields() {
//     static constexpr Row all[] = {row<&Ends::begin_s>("begin_s").required().within(0, 1e9),
//                                   row<&Ends::host>("host")};
//     return rows_of<Ends>(all);
//   }
//
// A member is a truth, number, text, quantity (its number is in the unit that its key ends with),
// Id, an enum class with a name_of(), a struct with fields(), JSON of others, or an optional,
// array, vector or map of these. Any other type has functions of its own beside it:
//
//   bool read_json(const JsonValue& value, Type& out);  // errors go to the value's document
//   Json written_json(const Type& value);
//
// A struct may have `void check(const JsonValue& value) const`, called once it is read, for what
// its keys must be to each other.
#pragma once

#include <array>
#include <concepts>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "core/enum_names.h"
#include "core/id.h"
#include "core/quantity.h"
#include "core/rows.h"

namespace stepcast {
namespace row_detail {

template <class Value>
inline constexpr bool kIsOptional = false;
template <class Value>
inline constexpr bool kIsOptional<std::optional<Value>> = true;
template <class Value>
inline constexpr std::size_t kArraySize = 0;
template <class Value, std::size_t size>
inline constexpr std::size_t kArraySize<std::array<Value, size>> = size;
template <class Value>
inline constexpr bool kIsId = false;
template <class Tag>
inline constexpr bool kIsId<Id<Tag>> = true;
template <class Value>
inline constexpr RowUnit kUnit = RowUnit::kNone;
template <>
inline constexpr RowUnit kUnit<Bytes> = RowUnit::kBytes;
template <>
inline constexpr RowUnit kUnit<BytesPerSecond> = RowUnit::kBytesPerSecond;
template <>
inline constexpr RowUnit kUnit<Seconds> = RowUnit::kSeconds;
template <>
inline constexpr RowUnit kUnit<FlopsPerSecond> = RowUnit::kFlopsPerSecond;

template <class Value>
concept Declares = requires {
  { Value::fields() } -> std::same_as<Rows>;
};
template <class Value>
concept Quantity = requires(const Value& value) {
  { value.value() } -> std::same_as<double>;
};
template <class Value>
concept ReadsItself = std::is_class_v<Value> && requires(const JsonValue& value, Value& out) {
  read_json(value, out);
};
template <class Value>
concept Container = kIsOptional<Value> || json_detail::List<Value>;

template <class Value>
const Value& as(const void* value) {
  return *static_cast<const Value*>(value);
}
template <class Value>
Value& as(void* value) {
  return *static_cast<Value*>(value);
}

// Containers say that they can be compared whatever their elements are.
template <class Value>
consteval bool has_equal() {
  if constexpr (json_detail::Mapping<Value>) {
    return has_equal<typename Value::mapped_type>();
  } else if constexpr (Container<Value>) {
    return has_equal<typename Value::value_type>();
  } else {
    return std::equality_comparable<Value>;
  }
}

template <class Value>
consteval RowType described();
template <class Value>
inline constexpr RowType kType = described<Value>();

template <class Value>
consteval void add_integer(RowType& out) {
  out.integer = [](const void* value) {
    if constexpr (kIsId<Value>) {
      return std::int64_t{as<Value>(value).value};
    } else {
      return static_cast<std::int64_t>(as<Value>(value));
    }
  };
  out.set_integer = [](void* value, std::int64_t read) {
    if constexpr (kIsId<Value>) {
      as<Value>(value).value = static_cast<std::int32_t>(read);
    } else {
      as<Value>(value) = static_cast<Value>(read);
    }
  };
  out.is_small = sizeof(Value) < sizeof(std::int64_t);
}

template <class Value>
consteval void add_number(RowType& out) {
  out.number = [](const void* value) {
    if constexpr (Quantity<Value>) {
      return as<Value>(value).value();
    } else {
      return double{as<Value>(value)};
    }
  };
  out.set_number = [](void* value, double read) { as<Value>(value) = static_cast<Value>(read); };
  out.unit = kUnit<Value>;
}

template <class Value>
consteval void add_optional(RowType& out) {
  using Inner = typename Value::value_type;
  out.element = &kType<Inner>;
  out.held = [](const void* value) -> const void* {
    const Value& optional = as<Value>(value);
    return optional ? &*optional : nullptr;
  };
  out.put = [](void* holder, const RowFill& fill) {
    Inner inner{};
    if (!fill(&inner)) return false;
    as<Value>(holder) = std::move(inner);
    return true;
  };
}

template <class Value>
consteval void add_list(RowType& out) {
  using Inner = typename Value::value_type;
  out.element = &kType<Inner>;
  out.put = [](void* holder, const RowFill& fill) {
    Inner inner{};
    fill(&inner);
    as<Value>(holder).insert(as<Value>(holder).end(), std::move(inner));
    return true;
  };
  out.each = [](const void* list, const RowVisit& visit) {
    for (const auto& one : as<Value>(list)) visit(nullptr, &one);
  };
}

template <class Value>
consteval void add_map(RowType& out) {
  out.element = &kType<typename Value::mapped_type>;
  out.has_named_numbers = std::is_arithmetic_v<typename Value::mapped_type>;
  out.at = [](void* map, const std::string& key) -> void* { return &as<Value>(map)[key]; };
  out.each = [](const void* map, const RowVisit& visit) {
    for (const auto& [key, one] : as<Value>(map)) visit(&key, &one);
  };
}

template <class Value>
consteval RowKind kind_of() {
  if constexpr (ReadsItself<Value>) {
    return RowKind::kOwn;
  } else if constexpr (Declares<Value>) {
    return RowKind::kObject;
  } else if constexpr (kIsOptional<Value>) {
    return RowKind::kOptional;
  } else if constexpr (json_detail::kIsTree<Value>) {
    return RowKind::kJson;
  } else if constexpr (std::is_same_v<Value, bool>) {
    return RowKind::kTruth;
  } else if constexpr (std::is_same_v<Value, std::string>) {
    return RowKind::kText;
  } else if constexpr (std::is_enum_v<Value>) {
    return RowKind::kChoice;
  } else if constexpr (std::is_integral_v<Value> || kIsId<Value>) {
    return RowKind::kInteger;
  } else if constexpr (std::is_floating_point_v<Value> || Quantity<Value>) {
    return RowKind::kNumber;
  } else if constexpr (kArraySize<Value> > 0) {
    return RowKind::kArray;
  } else if constexpr (json_detail::Mapping<Value>) {
    return RowKind::kMap;
  } else {
    return RowKind::kList;
  }
}

template <class Value>
consteval void add_own(RowType& out) {
  if constexpr (json_detail::kIsTree<Value>) {
    out.read = [](const JsonValue& value, void* tree) {
      as<Value>(tree) = value.raw();
      return true;
    };
    out.write = [](const void* tree) { return Json(as<Value>(tree)); };
  } else if constexpr (ReadsItself<Value>) {
    out.read = [](const JsonValue& value, void* own) { return read_json(value, as<Value>(own)); };
  }
  if constexpr (std::is_class_v<Value> && requires(const Value& value) { written_json(value); }) {
    out.write = [](const void* own) { return written_json(as<Value>(own)); };
  }
}

template <class Value>
consteval RowType described() {
  constexpr RowKind kKind = kind_of<Value>();
  RowType out;
  out.kind = kKind;
  if constexpr (has_equal<Value>()) {
    out.equal = [](const void* a, const void* b) { return as<Value>(a) == as<Value>(b); };
  }
  if constexpr (kKind == RowKind::kTruth || kKind == RowKind::kInteger ||
                kKind == RowKind::kChoice) {
    add_integer<Value>(out);
  }
  if constexpr (kKind == RowKind::kNumber) add_number<Value>(out);
  if constexpr (kKind == RowKind::kChoice) out.names = enum_names<Value>;
  if constexpr (kKind == RowKind::kOptional) add_optional<Value>(out);
  if constexpr (kKind == RowKind::kList) add_list<Value>(out);
  if constexpr (kKind == RowKind::kMap) add_map<Value>(out);
  if constexpr (kKind == RowKind::kArray) {
    out.element = &kType<typename Value::value_type>;
    out.size = kArraySize<Value>;
    out.stride = sizeof(typename Value::value_type);
  }
  if constexpr (kKind == RowKind::kObject) {
    out.rows = Value::fields;
    if constexpr (requires(const Value& one, const JsonValue& value) { one.check(value); }) {
      out.check = [](const void* one, const JsonValue& value) { as<Value>(one).check(value); };
    }
  }
  out.is_plain = std::is_arithmetic_v<Value> || std::is_enum_v<Value>;
  add_own<Value>(out);
  if constexpr (requires { Value::kAccepts; }) out.accepts = Value::kAccepts;
  return out;
}

template <class Member>
struct MemberOf;
template <class Held, class Class>
struct MemberOf<Held Class::*> {
  using Value = Held;
  using Holder = Class;
};

template <auto member>
constexpr Row row_of_member(const char* key) {
  using Of = MemberOf<decltype(member)>;
  Row out;
  out.key = key;
  out.type = &kType<typename Of::Value>;
  out.member = [](void* holder) -> void* { return &(as<typename Of::Holder>(holder).*member); };
  return out;
}

template <class Holder>
const void* usual_of() {
  static const Holder usual{};
  return &usual;
}

}  // namespace row_detail

template <auto member>
constexpr Row row(const char* key) {
  return row_detail::row_of_member<member>(key);
}
// The keys of the member stand beside those of its holder.
template <auto member>
constexpr Row beside() {
  return row_detail::row_of_member<member>(nullptr);
}
// A key for people, that is known and read into nothing.
constexpr Row remark(const char* key) {
  Row out;
  out.key = key;
  return out;
}

template <class Holder, std::size_t size>
Rows rows_of(const Row (&all)[size]) {
  Rows out{all, size};
  if constexpr (std::default_initializable<Holder>) out.usual = row_detail::usual_of<Holder>;
  return out;
}

}  // namespace stepcast
