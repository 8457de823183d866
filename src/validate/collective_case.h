// SPDX-License-Identifier: Apache-2.0
// Collectives that were measured by themselves, as nccl-tests does: a case of a suite beside those
// of steps (docs/formats/suite.md, "Collectives").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/quantity.h"
#include "operation/collective_kind.h"

namespace stepcast {

struct Rows;  // core/rows.h

// The library took this algorithm for messages of these sizes, as the source names it.
struct NamedAlgorithm {
  std::string name;  // "ring"
  std::int64_t from_bytes = 1;
  std::optional<std::int64_t> to_bytes = {};

  static Rows fields();
};

struct CollectiveCase {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::int64_t ranks = 0;           // 0: the case is no collective
  std::int64_t ranks_per_node = 0;  // 0: all GPUs of a node
  std::string fabric;               // whose row of the report it is in
  std::string table;                // the measured curve that was made of these times
  std::vector<NamedAlgorithm> algorithms;
  ByteCount bytes = 0;  // of this one, after the case has become one for each size

  std::string algorithm() const;  // that the source names for this size; empty: none

  static Rows fields();
};

// Bandwidth decides such a message's time, latency that of shorter ones.
inline constexpr ByteCount kLongMessage = 16 * 1024 * 1024;
inline bool is_long_message(ByteCount bytes) { return bytes >= kLongMessage; }
std::string size_text(ByteCount bytes);  // "16MiB", "1000B"

}  // namespace stepcast
