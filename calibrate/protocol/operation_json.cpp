// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/operation_json.h"

#include <type_traits>
#include <utility>

#include "core/enum_names.h"
#include "core/json_tree.h"

namespace stepcast {
namespace {

using Names = std::vector<std::string>;

constexpr double kMostBytes = 1e18;

template <class Holder, class Visit>
void each_field(Visit visit) {
  std::apply([&](const auto&... field) { (visit(field.first, field.second), ...); },
             Holder::fields());
}

// A work's fields, those of nested structs beside them.
template <class Holder>
void write(const Holder& holder, Json& out) {
  each_field<Holder>([&](const char* key, auto member) {
    using Value = std::decay_t<decltype(holder.*member)>;
    if constexpr (std::is_same_v<Value, AxisGroup> || std::is_enum_v<Value>) {
      out[key] = name_of(holder.*member);
    } else if constexpr (std::is_same_v<Value, OptionalCount>) {
      if (holder.*member) out[key] = (holder.*member).value;
    } else if constexpr (std::is_class_v<Value>) {
      write(holder.*member, out);
    } else {
      out[key] = holder.*member;
    }
  });
}

// Reads the fields from an object in which every key is required, but for optional counts.
class Fields {
 public:
  explicit Fields(ObjectReader& reader) : reader_(reader) {}

  template <class Holder>
  void read_all(Holder& holder) {
    each_field<Holder>([&](const char* key, auto member) { read(key, holder.*member); });
  }
  template <class Value>
  void read(const char* key, Value& value) {
    if constexpr (std::is_same_v<Value, AxisGroup>) {
      if (const auto group = reader_.required(key)) read_json(*group, value);
    } else if constexpr (std::is_same_v<Value, OptionalCount>) {
      value = {reader_.integer(key, 0, ObjectReader::kMaxCount).value_or(0)};
    } else if constexpr (std::is_class_v<Value>) {
      read_all(value);
    } else if constexpr (std::is_same_v<Value, bool>) {
      value = reader_.required(key) && reader_.boolean(key).value_or(false);
    } else if constexpr (std::is_enum_v<Value>) {
      value = static_cast<Value>(one_of(key, enum_names<Value>()));
    } else if constexpr (std::is_same_v<Value, double>) {
      value = reader_.required(key) ? reader_.number(key, 0, kMostBytes).value_or(0) : 0;
    } else {
      value = reader_.required_integer(key, 0);
    }
  }
  std::size_t one_of(const char* key, const Names& names) {
    return reader_.required(key) ? reader_.choice(key, names).value_or(0) : 0;
  }

 private:
  ObjectReader& reader_;
};

using ReadWork = Operation::Work (*)(Fields& fields);

template <class Work>
Operation::Work read_work(Fields& fields) {
  Work work{};
  fields.read_all(work);
  return work;
}

// One row for every alternative of Operation::Work.
struct WorkTable {
  Names families;
  std::vector<ReadWork> readers;
};

template <std::size_t... Index>
WorkTable table_of(std::index_sequence<Index...>) {
  return {{std::variant_alternative_t<Index, Operation::Work>::kFamily...},
          {read_work<std::variant_alternative_t<Index, Operation::Work>>...}};
}

const WorkTable& works() {
  static const WorkTable table =
      table_of(std::make_index_sequence<std::variant_size_v<Operation::Work>>());
  return table;
}

}  // namespace

Json operation_json(const Operation& operation) {
  Json out = {{"work", works().families[operation.work.index()]},
              {"name", operation.name},
              {"phase", name_of(operation.phase)}};
  std::visit([&](const auto& work) { write(work, out); }, operation.work);
  return out;
}

Operation read_operation(const JsonValue& value, OperationNames& names) {
  ObjectReader reader(value);
  Fields fields(reader);
  const std::size_t work = fields.one_of("work", works().families);
  Operation out{names.keep(reader.required_text("name")), Phase::kForward, Alias{}, {}, {}};
  fields.read("phase", out.phase);
  if (!value.is_object()) return out;
  out.work = works().readers[work](fields);
  reader.finish();
  return out;
}

}  // namespace stepcast
