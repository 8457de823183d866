// SPDX-License-Identifier: Apache-2.0
// One kernel or collective of a program, with its shapes: what the cost model prices, what the
// executor runs. Sizes are per rank, after sharding.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/data_type.h"
#include "core/id.h"
#include "core/quantity.h"
#include "layout/rank_grid.h"

namespace stepcast {

enum class MemoryCategory {
  kParameters,
  kGradients,
  kOptimizer,
  kActivations,
  kBuffers,
  kWorkspace
};
inline constexpr int kMemoryCategories = 6;
const char* name_of(MemoryCategory category);

using BufferId = Id<struct BufferTag>;

// A weight or a vector of a block, as this rank holds it.
using ParameterId = Id<struct ParameterTag>;

struct Buffer {
  const char* name;  // a literal: programs have many buffers and few names
  std::int64_t elements;
  DataType type;
  MemoryCategory category;
  ByteCount size() const { return elements * size_of(type); }
};

// C[m,n] = A[m,k] B[k,n], `batch` times. Forward: m tokens, n outputs, k inputs. Input gradient:
// m tokens, n inputs, k outputs. Weight gradient: m outputs, n inputs, k tokens.
enum class GemmRole { kForward, kInputGradient, kWeightGradient };
struct Gemm {
  GemmRole role;
  std::int64_t batch;
  std::int64_t m, n, k;
  DataType input;
  DataType output;
  bool accumulate;  // C += A B
};

// Fused (flash) attention. FLOPs forward: 4*batch*heads*query_length*key_length*head_dim, half of
// that when causal; backward 2.5 times as many.
struct Attention {
  bool backward;
  std::int64_t batch;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t query_length;
  std::int64_t key_length;
  std::int64_t head_dim;
  bool causal;
  DataType type;
};

// A memory-bound kernel. `bytes` is its traffic to device memory, all reads and writes.
enum class ElementwiseKind {
  kEmbedding,
  kNorm,
  kActivation,
  kDropoutAdd,
  kSoftmax,
  kRotary,
  kTranspose,
  kCrossEntropy,
  kReduction,
  kCast,
  kAccumulate,
  kFill,
  kOptimizer
};
struct Elementwise {
  ElementwiseKind kind;
  bool backward;
  std::int64_t elements;
  std::int64_t width;  // of a row, for kernels that reduce along rows; 0: flat
  double bytes;
  std::int64_t launches = 1;  // kernels that it takes where chains are not fused
};

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
struct Collective {
  CollectiveKind kind;
  AxisGroup group;
  ByteCount bytes;
  DataType type;
  bool overlapped = false;  // pipelined with the GEMM beside it (overlap.tp)
};

enum class Phase { kForward, kRecompute, kBackward, kWeightGradient, kOptimizer };
inline constexpr int kPhases = 5;
const char* name_of(Phase phase);  // "weight_gradient"

// Where a pass of a block runs an operation. Kernels run one after the other on kCompute;
// collectives and copies may have streams of their own and then run beside them. A pass ends when
// all its streams have ended.
enum class BlockStream { kCompute, kCommunication, kCopy };
inline constexpr int kBlockStreams = 3;

struct Operation {
  const char* name;  // "qkv", "attention", "mlp_up": a literal
  Phase phase;
  std::variant<Gemm, Attention, Elementwise, Collective> work;
  std::vector<BufferId> reads;
  std::vector<BufferId> writes;
  // Of its block: weights that it reads forward, and whose gradients it writes backward.
  std::vector<ParameterId> parameters = {};
  BlockStream stream = BlockStream::kCompute;
  // By stream: the latest earlier operation of the pass that must have ended (-1: none). An
  // operation follows those of its own stream without being told (program/block_events.h).
  std::array<std::int32_t, kBlockStreams> after{-1, -1, -1};
};

const char* name_of(CollectiveKind kind);

// Floating-point operations; 0 for memory-bound kernels and collectives.
Flops flops_of(const Operation& operation);

}  // namespace stepcast
