// SPDX-License-Identifier: Apache-2.0
#include "core/write_rows.h"

#include <fmt/format.h>

#include "core/assert.h"

namespace stepcast {
namespace {

const char* text_of(RowUnit unit) {
  switch (unit) {
    case RowUnit::kBytes:
      return "B";
    case RowUnit::kBytesPerSecond:
      return "B/s";
    case RowUnit::kSeconds:
      return "s";
    case RowUnit::kNone:
    case RowUnit::kFlopsPerSecond:
      break;
  }
  return "FLOP/s";
}

Json written_list(const void* value, const RowType& type, RowNames names) {
  Json out = names ? Json::object() : Json::array();
  std::size_t place = 0;
  const auto add = [&](const void* one) {
    Json json = written_value(one, *type.element, {});
    if (names) {
      out[names()[place++]] = std::move(json);
    } else {
      out.push_back(std::move(json));
    }
  };
  if (type.kind == RowKind::kList) {
    type.each(value, [&](const std::string*, const void* one) { add(one); });
  } else {
    for (std::size_t i = 0; i < type.size; ++i) add(type.place(value, i));
  }
  return out;
}

Json written_map(const void* value, const RowType& type, const RowRange& range) {
  Json out = Json::object();
  if (!type.has_named_numbers) {
    type.each(value, [&](const std::string* key, const void* one) {
      out[*key] = written_value(one, *type.element, range);
    });
    return out;
  }
  for (const std::string& name : range.names()) {
    type.each(value, [&](const std::string* key, const void* one) {
      if (*key == name) out[name] = written_value(one, *type.element, {});
    });
  }
  return out;
}

}  // namespace

Json written_value(const void* value, const RowType& type, const RowRange& range) {
  if (type.write != nullptr) return type.write(value);
  switch (type.kind) {
    case RowKind::kTruth: {
      const bool holds = type.integer(value) != 0;
      return range.names ? Json(range.names()[holds ? 1 : 0]) : Json(holds);
    }
    case RowKind::kInteger: {
      const std::int64_t number = type.integer(value);
      return range.names ? Json(range.names()[static_cast<std::size_t>(number)]) : Json(number);
    }
    case RowKind::kChoice:
      return (range.names ? range.names
                          : type.names)()[static_cast<std::size_t>(type.integer(value))];
    case RowKind::kNumber:
      if (!range.has_unit) return type.number(value);
      return fmt::format("{} {}", type.number(value),
                         text_of(range.unit == RowUnit::kNone ? type.unit : range.unit));
    case RowKind::kText:
      return *static_cast<const std::string*>(value);
    case RowKind::kOptional: {
      const void* held = type.held(value);
      return held ? written_value(held, *type.element, range) : Json();
    }
    case RowKind::kArray:
    case RowKind::kList:
      return written_list(value, type, range.names);
    case RowKind::kMap:
      return written_map(value, type, range);
    case RowKind::kObject: {
      Json out = Json::object();
      write_rows(type.rows(), value, out);
      return out;
    }
    case RowKind::kJson:
    case RowKind::kOwn:
      break;
  }
  STEPCAST_ASSERT(false, "a type that is only read");
  return {};
}

void write_rows(const Rows& rows, const void* holder, Json& out) {
  for (const Row& row : rows) {
    if (row.type == nullptr || !row.is_written) continue;
    if (row.is_there != nullptr && !row.is_there(holder)) continue;
    const void* value = row.of(holder);
    const RowType& type = *row.type;
    if (type.kind == RowKind::kOptional && type.held(value) == nullptr) continue;
    if (row.key == nullptr) {
      out.update(written_value(value, type, {}));
      continue;
    }
    if (row.says_more && rows.usual && type.equal(value, row.of(rows.usual()))) continue;
    out[row.key] = written_value(value, type, row.range);
  }
}

}  // namespace stepcast
