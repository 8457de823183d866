// SPDX-License-Identifier: Apache-2.0
#include "core/read_rows.h"

#include <fmt/format.h>

#include <functional>
#include <limits>
#include <optional>
#include <string>

namespace stepcast {
namespace {

// Whoever reads an element is handed on by reference: a copy would be allocated for each.

bool read_integer(const JsonValue& value, const RowType& type, const RowRange& range, void* out) {
  const std::int64_t usual = type.is_small ? std::int64_t{std::numeric_limits<std::int32_t>::max()}
                                           : ObjectReader::kMaxCount;
  const auto most = range.most == 0 ? usual : static_cast<std::int64_t>(range.most);
  const auto read = value.integer(static_cast<std::int64_t>(range.least), most);
  if (read) type.set_integer(out, *read);
  return read.has_value();
}

std::optional<double> with_unit(const JsonValue& value, RowUnit unit) {
  const auto number = [](const auto& quantity) -> std::optional<double> {
    if (!quantity) return std::nullopt;
    return quantity->value();
  };
  switch (unit) {
    case RowUnit::kBytes:
      return number(value.bytes());
    case RowUnit::kBytesPerSecond:
      return number(value.rate());
    case RowUnit::kSeconds:
      return number(value.seconds());
    case RowUnit::kFlopsPerSecond:
      return number(value.flops_rate());
    case RowUnit::kNone:
      break;
  }
  return std::nullopt;
}

bool read_number(const JsonValue& value, const RowType& type, const RowRange& range, void* out) {
  const double most = range.most == 0 ? std::numeric_limits<double>::max() : range.most;
  const RowUnit unit = range.unit == RowUnit::kNone ? type.unit : range.unit;
  const auto read = range.has_unit      ? with_unit(value, unit)
                    : range.is_positive ? value.number()
                                        : value.number(range.least, most);
  if (!read) return false;
  type.set_number(out, *read);
  if (range.is_positive && !(*read > 0 && *read < most)) {
    value.fail(ErrorCode::kBadValue, fmt::format("{} is out of range", *read), "more than 0");
  }
  return true;
}

bool read_choice(const JsonValue& value, const RowType& type, RowNames names, void* out) {
  const auto read = value.choice(names());
  if (read) type.set_integer(out, static_cast<std::int64_t>(*read));
  return read.has_value();
}

bool read_text(const JsonValue& value, const RowRange& range, std::string& out) {
  if (range.names == nullptr) {
    auto read = value.text();
    if (read) out = std::move(*read);
    return read.has_value();
  }
  const auto name = value.choice(range.names());
  if (name) out = range.names()[*name];
  return name.has_value();
}

bool read_array(const JsonValue& value, const RowType& type, const RowRange& range, void* out) {
  const auto place = [&](std::size_t i) { return const_cast<void*>(type.place(out, i)); };
  if (range.names != nullptr) {
    ObjectReader reader(value);
    const RowRange each{range.least, range.most};
    for (std::size_t i = 0; i < type.size; ++i) {
      const auto one = reader.value(range.names()[i]);
      if (one) read_value(*one, *type.element, each, place(i));
    }
    reader.finish();
    return true;
  }
  const auto items = value.items();
  if (items.size() != type.size) {
    value.fail(ErrorCode::kBadValue,
               fmt::format("{} numbers where {} are due", items.size(), type.size));
    return false;
  }
  for (std::size_t i = 0; i < type.size; ++i) {
    read_value(items[i], *type.element, range, place(i));
  }
  return true;
}

bool read_map(const JsonValue& value, const RowType& type, const RowRange& range, void* out) {
  if (!type.has_named_numbers) {
    for (const auto& [key, member] : value.members()) {
      read_value(member, *type.element, range, type.at(out, key));
    }
    return true;
  }
  ObjectReader reader(value);
  for (const std::string& name : range.names()) {
    if (const auto one = reader.value(name)) {
      read_value(*one, *type.element, range, type.at(out, name));
    }
  }
  reader.finish();
  return true;
}

bool read_object(const JsonValue& value, const RowType& type, void* out) {
  ObjectReader reader(value);
  read_rows(reader, type.rows(), out);
  reader.finish();
  if (type.check != nullptr) type.check(out, value);
  return true;
}

// Keys that stand beside those of the holder. An optional is there where its first key is.
void read_beside(ObjectReader& reader, const RowType& type, void* out) {
  if (type.kind == RowKind::kObject) return read_rows(reader, type.rows(), out);
  const Rows rows = type.element->rows();
  if (!reader.has(rows.first->key)) return;
  const auto read = [&](void* object) {
    read_rows(reader, rows, object);
    return true;
  };
  type.put(out, std::ref(read));
}

}  // namespace

bool read_value(const JsonValue& value, const RowType& type, const RowRange& range, void* out) {
  switch (type.kind) {
    case RowKind::kTruth: {
      if (range.names != nullptr) return read_choice(value, type, range.names, out);
      const auto read = value.boolean();
      if (read) type.set_integer(out, *read ? 1 : 0);
      return read.has_value();
    }
    case RowKind::kInteger:
      return range.names ? read_choice(value, type, range.names, out)
                         : read_integer(value, type, range, out);
    case RowKind::kNumber:
      return read_number(value, type, range, out);
    case RowKind::kText:
      return read_text(value, range, *static_cast<std::string*>(out));
    case RowKind::kChoice:
      return read_choice(value, type, range.names ? range.names : type.names, out);
    case RowKind::kOptional: {
      const auto read = [&](void* inner) { return read_value(value, *type.element, range, inner); };
      return type.put(out, std::ref(read));
    }
    case RowKind::kArray:
      return read_array(value, type, range, out);
    case RowKind::kList:
      for (const JsonValue& item : value.items()) {
        const auto read = [&](void* one) { return read_value(item, *type.element, range, one); };
        type.put(out, std::ref(read));
      }
      return true;
    case RowKind::kMap:
      return read_map(value, type, range, out);
    case RowKind::kObject:
      return read_object(value, type, out);
    case RowKind::kJson:
    case RowKind::kOwn:
      break;
  }
  return type.read(value, out);
}

void read_rows(ObjectReader& reader, const Rows& rows, void* holder) {
  for (const Row& row : rows) {
    if (row.is_there != nullptr && !row.is_there(holder)) continue;
    if (row.type == nullptr) {
      reader.ignore(row.key);
    } else if (row.key == nullptr) {
      read_beside(reader, *row.type, row.member(holder));
    } else {
      const auto value = row.is_required ? reader.required(row.key) : reader.value(row.key);
      if (value) read_value(*value, *row.type, row.range, row.member(holder));
    }
  }
}

}  // namespace stepcast
