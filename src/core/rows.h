// SPDX-License-Identifier: Apache-2.0
// A struct that is an object of a document, or the work of an operation, has a row for each of its
// members: key, range, words, and what the member is. Its header declares one function; the rows
// stand in its .cpp (core/row_types.h), and whoever walks over them needs neither the struct nor a
// template: core/read_rows.h, core/write_rows.h, core/declared_keys.h,
// cost/profile_forms.h, operation/signature.h.
//
//   struct Rows;  // core/rows.h
//   struct Ends {
//     double begin_s = 0;
//     std::optional<std::string> host;
//     static Rows fields();
//   };
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/json_tree.h"

namespace stepcast {

struct Rows;
struct RowType;
using RowNames = const std::vector<std::string>& (*)();

enum class RowUnit { kNone, kBytes, kBytesPerSecond, kSeconds, kFlopsPerSecond };

// Values of a key, or of each element under it.
struct RowRange {
  double least = 0;
  double most = 0;                // 0: as much as the type holds
  RowNames names = nullptr;       // of an enum's values, or of an array's places
  bool has_unit = false;          // the text has it, else the key
  RowUnit unit = RowUnit::kNone;  // of a plain number; a quantity knows its own
  bool is_positive = false;       // not 0
};

// kObject has rows of its own, kOwn functions of its own; an Id is an integer.
enum class RowKind {
  kTruth,
  kInteger,
  kNumber,
  kText,
  kChoice,
  kOptional,
  kArray,
  kList,
  kMap,
  kObject,
  kJson,
  kOwn
};

// Makes an element in its place; false where there is nothing to take over.
using RowFill = std::function<bool(void* element)>;
// The key is null in a list.
using RowVisit = std::function<void(const std::string* key, const void* element)>;

// A type of members, to those who hold a value of it without its type. Which functions there are
// depends on the kind.
struct RowType {
  RowKind kind = RowKind::kOwn;
  const RowType* element = nullptr;                       // of an optional, array, list or map
  bool (*equal)(const void* a, const void* b) = nullptr;  // null: it cannot be told

  std::int64_t (*integer)(const void*) = nullptr;  // and of a choice its place
  void (*set_integer)(void*, std::int64_t) = nullptr;
  bool is_small = false;  // fewer than 64 bits
  double (*number)(const void*) = nullptr;
  void (*set_number)(void*, double) = nullptr;
  RowUnit unit = RowUnit::kNone;  // of texts that have one
  RowNames names = nullptr;       // of an enum's values
  bool is_plain = false;          // a truth, number or enum, not one behind a type of its own

  const void* (*held)(const void* optional) = nullptr;  // null: nothing
  // An optional takes over what could be filled, a list whatever it is.
  bool (*put)(void* holder, const RowFill& fill) = nullptr;
  void* (*at)(void* map, const std::string& key) = nullptr;
  void (*each)(const void* list, const RowVisit& visit) = nullptr;
  bool has_named_numbers = false;    // the keys of a map are the names that its row states
  std::size_t size = 0, stride = 0;  // of an array
  const void* place(const void* array, std::size_t i) const {
    return static_cast<const char*>(array) + i * stride;
  }

  Rows (*rows)() = nullptr;
  void (*check)(const void* object, const JsonValue& value) = nullptr;
  bool (*read)(const JsonValue& value, void* out) = nullptr;
  Json (*write)(const void* value) = nullptr;
  const char* accepts = nullptr;  // for people
};

struct Row {
  const char* key = nullptr;      // null: the member's own keys stand beside the others
  const RowType* type = nullptr;  // null: a key for people, that is read into nothing
  void* (*member)(void* holder) = nullptr;
  RowRange range = {};
  bool is_required = false;
  bool says_more = false;  // written where it says more than the struct without
  bool is_signed = true;   // an operation's signature has it
  bool is_written = true;  // else it is read alone
  bool (*is_there)(const void* holder) = nullptr;  // by what has been read before; null: always
  const char* words = nullptr;                     // what it says, for the page of the format

  const void* of(const void* holder) const { return member(const_cast<void*>(holder)); }

  constexpr Row required() const {
    Row out = *this;
    out.is_required = true;
    return out;
  }
  constexpr Row within(double least, double most) const {
    Row out = *this;
    out.range.least = least;
    out.range.most = most;
    return out;
  }
  constexpr Row named(RowNames names) const {
    Row out = *this;
    out.range.names = names;
    return out;
  }
  // A quantity that is written as text: "3.5 s".
  constexpr Row with_unit(RowUnit unit = RowUnit::kNone) const {
    Row out = *this;
    out.range.has_unit = true;
    out.range.unit = unit;
    return out;
  }
  constexpr Row positive() const {
    Row out = *this;
    out.range.is_positive = true;
    return out;
  }
  constexpr Row unless_usual() const {
    Row out = *this;
    out.says_more = true;
    return out;
  }
  constexpr Row only_read() const {
    Row out = *this;
    out.is_written = false;
    return out;
  }
  constexpr Row not_signed() const {
    Row out = *this;
    out.is_signed = false;
    return out;
  }
  constexpr Row says(const char* sentence) const {
    Row out = *this;
    out.words = sentence;
    return out;
  }
  // Written, and known to the reader, where `holds(holder)`, which captures nothing.
  template <class Holder, class Holds>
  constexpr Row where(Holds) const {
    Row out = *this;
    out.is_there = [](const void* holder) { return Holds{}(*static_cast<const Holder*>(holder)); };
    return out;
  }
};

struct Rows {
  const Row* first = nullptr;
  std::size_t count = 0;
  const void* (*usual)() = nullptr;  // the struct as it begins; null: it has no beginning

  const Row* begin() const { return first; }
  const Row* end() const { return first + count; }
};

}  // namespace stepcast
