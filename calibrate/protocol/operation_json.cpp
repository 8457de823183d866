// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/operation_json.h"

#include <nlohmann/json.hpp>

#include "operation/signature.h"

namespace stepcast {
namespace {

using nlohmann::ordered_json;
using Names = std::vector<std::string>;

constexpr double kMostBytes = 1e18;

template <class Value>
Names names_up_to(Value last) {
  Names out;
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    out.emplace_back(name_of(static_cast<Value>(i)));
  }
  return out;
}

const Names& phase_names() {  // by Phase
  static const Names names = {"forward", "recompute", "backward", "weight_gradient", "optimizer"};
  return names;
}
const Names& work_names() {  // by the alternatives of Operation::work
  static const Names names = {"gemm", "attention", "elementwise", "collective"};
  return names;
}

void add(const Gemm& gemm, ordered_json& out) {
  out["role"] = name_of(gemm.role);
  out["batch"] = gemm.batch;
  out["m"] = gemm.m;
  out["n"] = gemm.n;
  out["k"] = gemm.k;
  out["input"] = name_of(gemm.input);
  out["output"] = name_of(gemm.output);
  out["accumulate"] = gemm.accumulate;
}

void add(const Attention& attention, ordered_json& out) {
  out["backward"] = attention.backward;
  out["batch"] = attention.batch;
  out["heads"] = attention.heads;
  out["kv_heads"] = attention.kv_heads;
  out["query_length"] = attention.query_length;
  out["key_length"] = attention.key_length;
  out["head_dim"] = attention.head_dim;
  out["causal"] = attention.causal;
  out["type"] = name_of(attention.type);
}

void add(const Elementwise& kernel, ordered_json& out) {
  out["kind"] = name_of(kernel.kind);
  out["backward"] = kernel.backward;
  out["elements"] = kernel.elements;
  out["width"] = kernel.width;
  out["bytes"] = kernel.bytes;
  out["launches"] = kernel.launches;
}

void add(const Collective& collective, ordered_json& out) {
  out["kind"] = name_of(collective.kind);
  out["group"] = name_of(collective.group);
  out["bytes"] = collective.bytes;
  out["type"] = name_of(collective.type);
  out["overlapped"] = collective.overlapped;
}

// One object; every key is required.
class Fields {
 public:
  explicit Fields(ObjectReader& reader) : reader_(reader) {}

  std::int64_t count(const char* key) { return reader_.required_integer(key, 0); }
  bool flag(const char* key) {
    return reader_.required(key) ? reader_.boolean(key).value_or(false) : false;
  }
  std::size_t one_of(const char* key, const Names& names) {
    return reader_.required(key) ? reader_.choice(key, names).value_or(0) : 0;
  }
  template <class Value>
  Value named(const char* key, Value last) {
    return static_cast<Value>(one_of(key, names_up_to(last)));
  }
  AxisGroup group(const char* key) {
    Names names;
    for (const NamedGroup& one : named_groups()) names.emplace_back(one.name);
    return named_groups()[one_of(key, names)].group;
  }
  DataType type(const char* key) { return named(key, DataType::kInt8); }
  double bytes(const char* key) {
    return reader_.required(key) ? reader_.number(key, 0, kMostBytes).value_or(0) : 0;
  }

 private:
  ObjectReader& reader_;
};

// Members in the order of the braces: each key is asked for once.
Gemm read_gemm(Fields fields) {
  return Gemm{fields.named("role", GemmRole::kWeightGradient),
              fields.count("batch"),
              fields.count("m"),
              fields.count("n"),
              fields.count("k"),
              fields.type("input"),
              fields.type("output"),
              fields.flag("accumulate")};
}

Attention read_attention(Fields fields) {
  return Attention{
      fields.flag("backward"),  fields.count("batch"),        fields.count("heads"),
      fields.count("kv_heads"), fields.count("query_length"), fields.count("key_length"),
      fields.count("head_dim"), fields.flag("causal"),        fields.type("type")};
}

Elementwise read_elementwise(Fields fields) {
  return Elementwise{fields.named("kind", ElementwiseKind::kOptimizer),
                     fields.flag("backward"),
                     fields.count("elements"),
                     fields.count("width"),
                     fields.bytes("bytes"),
                     fields.count("launches")};
}

Collective read_collective(Fields fields) {
  return Collective{fields.named("kind", CollectiveKind::kBroadcast), fields.group("group"),
                    fields.count("bytes"), fields.type("type"), fields.flag("overlapped")};
}

}  // namespace

ordered_json operation_json(const Operation& operation) {
  ordered_json out = {{"work", work_names()[operation.work.index()]},
                      {"name", operation.name},
                      {"phase", phase_names()[static_cast<std::size_t>(operation.phase)]}};
  std::visit([&](const auto& work) { add(work, out); }, operation.work);
  return out;
}

Operation read_operation(const JsonValue& value, OperationNames& names) {
  ObjectReader reader(value);
  Fields fields(reader);
  const std::size_t work = fields.one_of("work", work_names());
  Operation out{names.keep(reader.required_text("name")),
                static_cast<Phase>(fields.one_of("phase", phase_names())),
                {},
                {},
                {}};
  if (!value.is_object()) return out;
  if (work == 0) out.work = read_gemm(fields);
  if (work == 1) out.work = read_attention(fields);
  if (work == 2) out.work = read_elementwise(fields);
  if (work == 3) out.work = read_collective(fields);
  reader.finish();
  return out;
}

}  // namespace stepcast
