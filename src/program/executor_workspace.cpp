// SPDX-License-Identifier: Apache-2.0
#include "program/executor_workspace.h"

#include <algorithm>

#include "program/fp8_operands.h"
#include "program/walk.h"

namespace stepcast {
namespace {

constexpr ByteCount kProducts = 32 << 20;  // GemmSettings::workspace_bytes: a test compares
constexpr ByteCount kHalf = 2, kSingle = 4;

// Blocks have 64 keys, and half of the columns of heads that are wider than 128. As many parts as
// make 528 of them, four for each multiprocessor of an H100.
ByteCount key_sums(const Attention& attention) {
  constexpr std::int64_t kKeys = 64, kWide = 128, kBlocks = 4 * 132;
  // The longer of two pieces of a sequence that ranks share sees up to all keys, twice the mean.
  const std::int64_t keys = attention.key_length * (attention.piece ? 2 : 1);
  const std::int64_t blocks = (keys + kKeys - 1) / kKeys * (attention.head_dim > kWide ? 2 : 1) *
                              attention.kv_heads * attention.batch;
  const std::int64_t group = attention.heads / attention.kv_heads;
  const std::int64_t parts = std::min((kBlocks + blocks - 1) / blocks, group);
  if (parts == 1) return 0;
  return 2 * parts * kSingle * attention.batch * keys * attention.kv_heads * attention.head_dim;
}

}  // namespace

ByteCount attention_workspace(const Attention& attention, AttentionBy by) {
  if (size_of(attention.type) != kHalf || !attention.backward) return 0;
  if (by == AttentionBy::kOwnKernels) return key_sums(attention);
  const ByteCount rows = attention.batch * attention.heads * attention.query_length;
  const ByteCount queries = rows * attention.head_dim;
  ByteCount bytes =
      by == AttentionBy::kAtomics ? kSingle * queries : kHalf * rows * attention.key_length;
  if (attention.heads != attention.kv_heads) bytes += 2 * kHalf * queries;
  return bytes;
}

std::int64_t rows_of_norms_to_fp8(std::int64_t width, DataType type) {
  constexpr ByteCount kRoom = 8 << 20;
  return std::max<std::int64_t>(1, kRoom / (width * size_of(type)));
}

namespace {

ByteCount norms_to_fp8(const Program& program, const Role& role) {
  ByteCount out = 0;
  for_each_block(program, role, [&](const Block& block) {
    for (const BlockPass& pass : block.passes) {
      for (const Operation& operation : pass.operations) {
        const auto* norm = std::get_if<Normalization>(&operation.work);
        if (norm == nullptr || !makes_fp8(block, operation)) continue;
        const std::int64_t width = norm->size.width;
        const std::int64_t rows =
            std::min(norm->size.rows(), rows_of_norms_to_fp8(width, norm->type));
        out = std::max(out, rows * width * size_of(norm->type));
      }
    }
  });
  return out;
}

}  // namespace

ByteCount executor_workspace(const Program& program, const Role& role, AttentionBy by) {
  ByteCount largest = 0, angles = 0;
  for_each_operation(program, role, [&](const Operation& operation) {
    if (const auto* rotary = std::get_if<Rotary>(&operation.work)) {
      angles = kSingle * rotary->sequence * rotary->head_dim;
    } else if (const auto* attention = std::get_if<Attention>(&operation.work)) {
      largest = std::max(largest, attention_workspace(*attention, by));
    }
  });
  return kProducts + largest + angles + norms_to_fp8(program, role);
}

}  // namespace stepcast
