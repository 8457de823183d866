// SPDX-License-Identifier: Apache-2.0
// Latent attention and multi-token prediction run these between their products.
#pragma once

#include "core/data_type.h"
#include "operation/memory_bound.h"

namespace stepcast {

struct Rows;  // core/rows.h

// Latent attention (DeepSeek-V2, section 2.1): turns the rotary part of the queries in their place,
// and makes keys of their own part and the rotary key that all heads share, and values of their
// own. Backward: the gradients of what it read.
struct LatentRotary {
  bool backward;
  std::int64_t sequence;
  std::int64_t heads;
  std::int64_t plain, rotary, value;  // elements of a head
  DataType type;
  KernelSize size;

  static constexpr const char* kFamily = "latent_rotary";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kRotary;
  static Rows fields();
};

// Each tensor parallel rank has made its columns of `rows` rows, and all of them lie rank by rank:
// they become rows of the whole width, those of this rank where ranks share a sequence. Backward:
// the rank's own columns of all rows.
struct JoinColumns {
  bool backward;
  std::int64_t rows;
  std::int64_t ranks;
  DataType type;
  KernelSize size;

  static constexpr const char* kFamily = "join_columns";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kTranspose;
  static Rows fields();
};

// Rows of two tensors beside each other as the rows of one, or apart again.
struct JoinRows {
  bool backward;
  DataType type;
  KernelSize size;

  static constexpr const char* kFamily = "join_rows";
  static constexpr MemoryBoundKind kKind = MemoryBoundKind::kTranspose;
  static Rows fields();
};

}  // namespace stepcast
