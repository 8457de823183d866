// SPDX-License-Identifier: Apache-2.0
// The streams of a rank: what runs on one of them runs one after the other.
#pragma once

#include <optional>

#include "operation/block_stream.h"

namespace stepcast {

enum class Stream {
  kCompute,
  kGather,
  kReduce,
  kSendForward,
  kReceiveForward,
  kSendBackward,
  kReceiveBackward,
  // Chunks on the way up, where a folded pipeline comes back, have their own: they cross others.
  kSendForwardUp,
  kReceiveForwardUp,
  kSendBackwardUp,
  kReceiveBackwardUp,
  kHost,
  kCopyOut,  // to host memory
  kCopyIn,
  kBlockCommunication,  // operations of blocks that run beside the others
  kBlockCopy,
  kReduceCopies,  // gradients, over the copies of sharded states
  kHostUpdate     // the host's threads
};
inline constexpr int kStreams = 18;
const char* name_of(Stream stream);

// A stream of transfers between stages: what moves on it, and on which side of it the rank stands.
struct TransferStream {
  bool sends;
  bool activations;  // or their gradients
  bool up;           // of chunks on the way up
  bool operator==(const TransferStream&) const = default;
};
Stream stream_of(const TransferStream& transfers);
std::optional<TransferStream> transfers_of(Stream stream);  // none of another stream

// A rank runs here what a block has on one of its streams.
Stream stream_of(BlockStream stream);

}  // namespace stepcast
