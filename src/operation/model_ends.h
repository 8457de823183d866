// SPDX-License-Identifier: Apache-2.0
// A model begins and ends with these: the tables of tokens and positions, and the loss.
#pragma once

#include "core/data_type.h"
#include "operation/memory_bound.h"
#include "operation/optional_count.h"

namespace stepcast {

struct Rows;  // core/rows.h

// Rows of the table by token; backward adds a token's gradient to its row.
struct TokenEmbedding {
  bool backward;
  std::int64_t vocab;  // rows of the table on this rank
  DataType type;
  DataType gradient;  // of the table
  KernelSize size;
  OptionalCount ahead = {};  // prediction modules look up tokens that come so much later

  static constexpr const char* kFamily = "token_embedding";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kEmbedding;
  static Rows fields();
};

// Adds the learned embedding of each position; backward adds gradients to the table's rows.
struct PositionEmbedding {
  bool backward;
  std::int64_t sequence;
  std::int64_t positions;  // rows of the table
  std::int64_t offset;     // of the first position among them (OPT begins with row 2)
  DataType type;
  DataType gradient;  // of the table
  KernelSize size;

  static constexpr const char* kFamily = "position_embedding";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kEmbedding;
  static Rows fields();
};

// Autograd writes a dense gradient of the table, which begins as zeros.
struct ZeroTableGradient {
  DataType type;
  KernelSize size;

  static constexpr const char* kFamily = "zero_table_gradient";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kFill;
  static constexpr bool backward = true;
  static Rows fields();
};

// Forward: of every token the largest logit, the sum of exponentials and the target's logit.
// Backward: the gradient of the logits, in their place. A row is one token's logits on this rank.
struct CrossEntropy {
  bool backward;
  DataType type;  // of the logits
  KernelSize size;
  OptionalCount ahead = {};  // prediction modules predict a token that comes so much later

  static constexpr const char* kFamily = "cross_entropy";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kCrossEntropy;
  static Rows fields();
};

}  // namespace stepcast
