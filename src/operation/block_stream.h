// SPDX-License-Identifier: Apache-2.0
// The streams of a block.
#pragma once

namespace stepcast {

// A pass of a block runs an operation on one of these. Kernels run one after the other on kCompute;
// collectives and copies may have streams of their own and then run beside them. A pass ends when
// all its streams have ended.
enum class BlockStream { kCompute, kCommunication, kCopy };
inline constexpr int kBlockStreams = 3;

}  // namespace stepcast
