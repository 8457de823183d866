// SPDX-License-Identifier: Apache-2.0
#include "program/executor_workspace.h"

#include <algorithm>

namespace stepcast {
namespace {

constexpr ByteCount kProducts = 32 << 20;  // GemmSettings::workspace_bytes
constexpr ByteCount kHalf = 2, kSingle = 4;

}  // namespace

ByteCount attention_workspace(const Attention& attention, AttentionBy by) {
  const bool is_cudnn = by != AttentionBy::kOwnKernels && size_of(attention.type) == kHalf;
  if (!is_cudnn || !attention.backward) return 0;
  const ByteCount rows = attention.batch * attention.heads * attention.query_length;
  const ByteCount queries = rows * attention.head_dim;
  ByteCount bytes =
      by == AttentionBy::kAtomics ? kSingle * queries : kHalf * rows * attention.key_length;
  if (attention.heads != attention.kv_heads) bytes += 2 * kHalf * queries;
  return bytes;
}

ByteCount executor_workspace(const Program& program, const Role& role, AttentionBy by) {
  ByteCount largest = 0;
  for (const Chunk& chunk : role.chunks) {
    for (const BlockId id : chunk.blocks) {
      for (const BlockPass& pass : program.block(id).passes) {
        for (const Operation& operation : pass.operations) {
          const auto* attention = std::get_if<Attention>(&operation.work);
          if (attention == nullptr) continue;
          largest = std::max(largest, attention_workspace(*attention, by));
        }
      }
    }
  }
  return kProducts + largest;
}

}  // namespace stepcast
