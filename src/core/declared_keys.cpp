// SPDX-License-Identifier: Apache-2.0
#include "core/declared_keys.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/text/escape.h"
#include "core/write_rows.h"

namespace stepcast {
namespace {

std::string accepted_range(const RowRange& range) {
  constexpr double kUnbounded = 1e9;
  if (range.least < -kUnbounded) return "a number";
  if (range.most == 0 || range.most > kUnbounded) {
    if (range.is_positive || (range.least > 0 && range.least < 1)) return "more than 0";
    return fmt::format("{} or more", range.least);
  }
  if (range.least == range.most) return fmt::format("{}", range.least);
  return fmt::format("{} to {}", range.least < 1e-9 ? 0 : range.least, range.most);
}

std::string numbers_by_name(RowNames names) {
  constexpr std::size_t kFew = 8;
  if (names == nullptr) return "a list of numbers";
  return "numbers by name" + (names().size() > kFew ? "" : ": " + one_of(names()));
}

std::string accepted(const RowType& type, const RowRange& range) {
  if (type.accepts != nullptr) return type.accepts;
  switch (type.kind) {
    case RowKind::kOwn:
      return "text";
    case RowKind::kOptional:
      return accepted(*type.element, range);
    case RowKind::kJson:
      return "JSON";
    case RowKind::kObject:
      return "an object";
    case RowKind::kArray:
      return numbers_by_name(range.names);
    case RowKind::kMap:
      return type.has_named_numbers ? numbers_by_name(range.names)
                                    : "by name: " + accepted(*type.element, range);
    case RowKind::kList:
      if (type.element->kind == RowKind::kObject) return "a list of objects";
      if (type.element->kind == RowKind::kText) return "a list of texts";
      return "a list of " + accepted(*type.element, range);
    case RowKind::kChoice:
      return one_of((range.names ? range.names : type.names)());
    case RowKind::kTruth:
    case RowKind::kInteger:
    case RowKind::kNumber:
    case RowKind::kText:
      break;
  }
  if (range.names) return one_of(range.names());
  if (type.kind == RowKind::kTruth) return "true or false";
  if (type.kind == RowKind::kText) return "text";
  if (type.unit == RowUnit::kSeconds && range.has_unit) return "a time with its unit";
  return accepted_range(range);
}

std::string usual(const Row& row, const Rows& rows) {
  if (row.is_required) return "required";
  if (!row.type->is_plain) return "";
  const RowType& type = *row.type;
  const void* value = row.of(rows.usual());
  const double least = row.range.least;  // what is less is "none" of its own
  if (type.kind == RowKind::kNumber) {
    return type.number(value) < least ? "" : fmt::format("{}", type.number(value));
  }
  if (type.kind == RowKind::kInteger && static_cast<double>(type.integer(value)) < least) return "";
  const Json json = written_value(value, type, row.range);
  return json.is_string() ? json.get_text() : json_text(json);
}

// The struct that an optional, a list or a map holds; the type itself where it holds none.
const RowType& held_by(const RowType& type) {
  return type.element == nullptr ? type : held_by(*type.element);
}

void add_keys(const Rows& rows, const std::string& prefix, std::vector<DeclaredKey>& out) {
  for (const Row& row : rows) {
    if (row.type == nullptr) {
      out.push_back({prefix + row.key, "anything", "", "for people"});
      continue;
    }
    const RowType& inner = held_by(*row.type);
    const bool is_object = inner.rows != nullptr;
    if (row.key == nullptr) {
      if (is_object) add_keys(inner.rows(), prefix, out);
      continue;
    }
    const std::string path = prefix + row.key;
    if (row.words == nullptr && row.is_there != nullptr) continue;  // no file has it
    if (row.words != nullptr || !is_object) {
      out.push_back({path, accepted(*row.type, row.range), usual(row, rows),
                     row.words == nullptr ? "" : row.words});
    }
    if (is_object) add_keys(inner.rows(), path + ".", out);
  }
}

}  // namespace

std::vector<DeclaredKey> declared_keys(const Rows& rows, const std::string& prefix) {
  std::vector<DeclaredKey> out;
  add_keys(rows, prefix, out);
  return out;
}

}  // namespace stepcast
