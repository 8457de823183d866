// SPDX-License-Identifier: Apache-2.0
// A struct that is an object of a JSON document declares its keys once, in fields(). Reader and
// writer follow from the rows, and so do the errors about what is missing, of another type, out of
// range or unknown. A key that is not there leaves its member as it is.
//
//   struct Ends {
//     double begin_s = 0;
//     std::optional<std::string> host;
//     static auto fields() {
//       return std::tuple{json_field("begin_s", &Ends::begin_s).required().within(0, 1e9),
//                         json_field("host", &Ends::host)};
//     }
//   };
//
// A member is a truth, number, text, quantity (its number is in the unit that its key ends with),
// an enum class with a name_of(), such a struct, JSON of others, or an optional, array, vector or
// map of these; core/json_fields.h reads and writes it.
#pragma once

#include <string>
#include <tuple>
#include <vector>

namespace stepcast {

using JsonNames = const std::vector<std::string>& (*)();

// Values of a key, or of each element under it.
struct JsonRange {
  double least = 0;
  double most = 0;            // 0: as much as the type holds
  JsonNames names = nullptr;  // of an enum's values, or of an array's places
  bool has_unit = false;      // a quantity's text has it, else its key
  bool is_positive = false;   // not 0
};

template <class Holder, class Value>
struct JsonField {
  const char* key;  // null: the member's own keys stand beside the others
  Value Holder::*member;
  JsonRange range = {};
  bool is_required = false;
  bool (*is_usual)(const Value& value, const Value& usual) = nullptr;  // then it is not written
  bool (*is_there)(const Holder&) = nullptr;  // by what has been read before it; null: always
  const char* words = nullptr;                // what it says, for the page of the format

  constexpr JsonField required() const {
    JsonField out = *this;
    out.is_required = true;
    return out;
  }
  constexpr JsonField within(double least, double most) const {
    JsonField out = *this;
    out.range.least = least;
    out.range.most = most;
    return out;
  }
  constexpr JsonField named(JsonNames names) const {
    JsonField out = *this;
    out.range.names = names;
    return out;
  }
  // A quantity that is written as text: "3.5 s".
  constexpr JsonField with_unit() const {
    JsonField out = *this;
    out.range.has_unit = true;
    return out;
  }
  constexpr JsonField positive() const {
    JsonField out = *this;
    out.range.is_positive = true;
    return out;
  }
  // Written where it says more than the struct says without it.
  constexpr JsonField unless_usual() const {
    JsonField out = *this;
    out.is_usual = [](const Value& value, const Value& usual) { return value == usual; };
    return out;
  }
  constexpr JsonField says(const char* sentence) const {
    JsonField out = *this;
    out.words = sentence;
    return out;
  }
  // Written, and known to the reader, where this holds.
  constexpr JsonField where(bool (*holds)(const Holder&)) const {
    JsonField out = *this;
    out.is_there = holds;
    return out;
  }
};
// A key for people, that is known and read into nothing.
struct JsonRemark {
  const char* key;
};

template <class Holder, class Value>
constexpr JsonField<Holder, Value> json_field(const char* key, Value Holder::*member) {
  return {key, member};
}

}  // namespace stepcast
