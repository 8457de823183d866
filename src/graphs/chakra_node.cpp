// SPDX-License-Identifier: Apache-2.0
#include "graphs/chakra_node.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "graphs/wire_format.h"

namespace stepcast {
namespace {

using Read = tl::expected<void, std::string>;

constexpr std::size_t kMostDimensions = 64;  // of a network

tl::unexpected<std::string> wrong(std::string words) {
  return tl::unexpected<std::string>(std::move(words));
}

// Fields of a node (et_def.proto).
enum NodeField : std::uint32_t {
  kId = 1,
  kName = 2,
  kType = 3,
  kControl = 4,
  kData = 5,
  kDuration = 7,
  kInputs = 8,
  kAttribute = 10
};
struct Attribute {
  std::string_view name;
  std::uint64_t number = 0;
  bool has_number = false, is_negative = false;
  std::string_view text;
  std::string_view bools;
};

// A signed number is one that varint writes as 64 bits; a zigzag one has its sign in the last bit.
void set_number(const WireField& field, Attribute& out) {
  out.has_number = true;
  out.number = field.value;
  double real = 0;
  switch (static_cast<ChakraValue>(field.number)) {
    case ChakraValue::kDouble:
      real = std::bit_cast<double>(field.value);
      break;
    case ChakraValue::kFloat:
      real = std::bit_cast<float>(static_cast<std::uint32_t>(field.value));
      break;
    case ChakraValue::kSint32:
    case ChakraValue::kSint64:
      out.is_negative = (field.value & 1) != 0;
      out.number = field.value >> 1;
      return;
    default:
      out.is_negative = field.value >> 63 != 0;
      return;
  }
  out.is_negative = !(real >= 0 && real < 1.8e19);
  out.number = out.is_negative ? 0 : static_cast<std::uint64_t>(std::llround(std::min(real, 9e18)));
}

Read read_attribute(std::string_view message, Attribute& out) {
  WireReader reader(message);
  WireField field;
  while (reader.next(field)) {
    const auto kind = static_cast<ChakraValue>(field.number);
    if (field.number == 1) {
      out.name = field.bytes;
    } else if (kind == ChakraValue::kText || kind == ChakraValue::kRaw) {
      out.text = field.bytes;
    } else if (kind == ChakraValue::kBools) {
      out.bools = field.bytes;
    } else if (kind >= ChakraValue::kDouble && kind <= ChakraValue::kLast &&
               field.type != WireType::kBytes) {
      set_number(field, out);
    }
  }
  if (reader.wrong() != nullptr) return wrong(reader.wrong());
  return {};
}

// The list of truths of `involved_dim`, which a writer may pack.
Read take_truths(std::string_view list, std::vector<bool>& out) {
  WireReader reader(list);
  WireField field;
  while (reader.next(field)) {
    if (field.number != 1) continue;
    if (field.type == WireType::kVarint) out.push_back(field.value != 0);
    WireReader values(field.bytes);
    std::uint64_t value = 0;
    while (values.next_varint(value)) out.push_back(value != 0);
  }
  if (out.size() > kMostDimensions) {
    return wrong(fmt::format("its attribute involved_dim has {} values", out.size()));
  }
  return {};
}

Read take_attribute(std::string_view message, ChakraNode& out) {
  Attribute one;
  if (const Read read = read_attribute(message, one); !read) return read;
  struct Row {
    const char* name;
    std::optional<std::uint64_t> ChakraNode::*member;
  };
  static constexpr Row kRows[] = {{"comm_type", &ChakraNode::collective},
                                  {"comm_size", &ChakraNode::bytes},
                                  {"comm_src", &ChakraNode::source},
                                  {"comm_dst", &ChakraNode::target},
                                  {"comm_tag", &ChakraNode::tag},
                                  {"num_ops", &ChakraNode::operations},
                                  {"tensor_size", &ChakraNode::tensor_bytes}};
  for (const Row& row : kRows) {
    if (one.name != row.name) continue;
    if (!one.has_number) return wrong(fmt::format("its attribute {} is no number", row.name));
    if (one.is_negative) return wrong(fmt::format("its attribute {} is below 0", row.name));
    out.*row.member = one.number;
    return {};
  }
  if (one.name == "is_cpu_op") {
    out.is_on_host = one.number != 0;
  } else if (one.name == "pg_name") {
    out.group = one.text;
  } else if (one.name == "involved_dim") {
    return take_truths(one.bools, out.dimensions);
  }
  return {};
}

Read take_dependencies(const WireField& field, std::vector<std::uint64_t>& out) {
  if (field.type == WireType::kVarint) {
    out.push_back(field.value);
    return {};
  }
  if (field.type != WireType::kBytes) return wrong("its dependencies are no numbers");
  WireReader values(field.bytes);
  std::uint64_t value = 0;
  while (values.next_varint(value)) out.push_back(value);
  if (values.wrong() != nullptr) return wrong(values.wrong());
  return {};
}

std::string_view values_of(std::string_view inputs) {
  WireReader reader(inputs);
  WireField field;
  while (reader.next(field)) {
    if (field.number == 1 && field.type == WireType::kBytes) return field.bytes;
  }
  return {};
}

Read take_field(const WireField& field, ChakraNode& out) {
  const bool is_number = field.type == WireType::kVarint;
  const bool is_text = field.type == WireType::kBytes;
  switch (field.number) {
    case kId:
    case kType:
    case kDuration:
      if (!is_number) return wrong("its id, type or duration is no number");
      if (field.number == kId) out.id = field.value;
      if (field.number == kDuration) out.duration_us = field.value;
      if (field.number != kType) return {};
      if (field.value >= kChakraTypes) {
        return wrong(fmt::format("its type {} does not exist", field.value));
      }
      out.type = static_cast<ChakraType>(field.value);
      return {};
    case kName:
      if (!is_text) return wrong("its name is no text");
      out.name = field.bytes;
      return {};
    case kControl:
      return take_dependencies(field, out.control);
    case kData:
      return take_dependencies(field, out.data);
    case kInputs:
      if (is_text) out.input_values = values_of(field.bytes);
      return {};
    case kAttribute:
      if (!is_text) return wrong("its attribute is no message");
      return take_attribute(field.bytes, out);
    default:
      return {};
  }
}

}  // namespace

Read read_chakra_node(std::string_view message, ChakraNode& out) {
  WireReader reader(message);
  WireField field;
  while (reader.next(field)) {
    if (const Read read = take_field(field, out); !read) return read;
  }
  if (reader.wrong() != nullptr) return wrong(reader.wrong());
  return {};
}

}  // namespace stepcast
