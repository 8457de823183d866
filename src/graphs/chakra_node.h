// SPDX-License-Identifier: Apache-2.0
// One node of an MLCommons Chakra execution trace (schema/protobuf/et_def.proto of
// mlcommons/chakra), as its message says it. Attributes are found by name, and a number may be of
// any of the schema's types, because writers choose freely among them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace stepcast {

enum class ChakraType : std::uint64_t {
  kInvalid,
  kMetadata,
  kMemoryLoad,
  kMemoryStore,
  kCompute,
  kSend,
  kReceive,
  kCollective,
  kStorage,
  kBatch,
  kCheckpoint
};
inline constexpr std::uint64_t kChakraTypes = 11;

// Fields of an attribute that hold its value. Even numbers between them are lists.
enum class ChakraValue : std::uint32_t {
  kDouble = 3,
  kFloat = 5,
  kInt32 = 7,
  kInt64 = 9,
  kUint64 = 13,
  kSint32 = 15,
  kSint64 = 17,
  kBool = 27,
  kBools = 28,
  kText = 29,
  kRaw = 31,
  kLast = 33
};

struct ChakraNode {
  std::uint64_t id = 0;
  std::string_view name;
  ChakraType type = ChakraType::kInvalid;
  std::vector<std::uint64_t> control, data;  // that it waits for
  std::uint64_t duration_us = 0;
  std::string_view input_values;  // of metadata: the definition of groups

  bool is_on_host = false;
  std::optional<std::uint64_t> collective, bytes, source, target, tag;
  std::optional<std::uint64_t> operations, tensor_bytes;
  std::string_view group;        // pg_name; empty: all ranks
  std::vector<bool> dimensions;  // involved_dim: whether it spans each of the network's
};

// Views into the message. The error is the reason alone, in words.
tl::expected<void, std::string> read_chakra_node(std::string_view message, ChakraNode& out);

}  // namespace stepcast
