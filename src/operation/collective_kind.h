// SPDX-License-Identifier: Apache-2.0
// The kinds of collectives.
#pragma once

namespace stepcast {

// `bytes` as nccl-tests counts: all-reduce the buffer, all-gather the full output, reduce-scatter
// the full input, all-to-all what one rank sends, broadcast and send/receive the message.
enum class CollectiveKind {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBroadcast,
  kSendReceive  // between two ranks
};
inline constexpr int kCollectiveKinds = 6;
const char* name_of(CollectiveKind kind);

}  // namespace stepcast
