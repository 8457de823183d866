// SPDX-License-Identifier: Apache-2.0
// One kernel or collective of a program, with its shapes: what the cost model prices, what the
// executor runs, what a calibration measures. Sizes are per rank, after sharding.
//
// Every kind of work is a struct of its own, in the header of its family. It says all that a kernel
// needs beside its arrays; names are for people. To add one: write its struct and, in the .cpp of
// its family, its rows, add it to Operation::Work, and say in execute/call_kernel.cpp which kernel
// runs it. Costs, signatures and JSON follow from the rows.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/data_type.h"
#include "core/id.h"
#include "core/quantity.h"
#include "operation/attention_parts.h"
#include "operation/block_stream.h"
#include "operation/buffer.h"
#include "operation/collective.h"
#include "operation/context_parts.h"
#include "operation/expert_parts.h"
#include "operation/gradient_work.h"
#include "operation/latent_parts.h"
#include "operation/layer_parts.h"
#include "operation/memory_bound.h"
#include "operation/model_ends.h"
#include "operation/phase.h"
#include "operation/product.h"

namespace stepcast {

// No kernel: what it writes is what it reads under another name, or nobody reads it any more.
struct Alias {
  static constexpr const char* kFamily = "alias";
  static Rows fields();
};

// CUDA graphs of parts of a layer launch the attention half, or the router of experts with what
// counts its rows.
enum class GraphPart { kNone, kAttention, kRouter };

struct Operation {
  using Work =
      std::variant<Gemm, AttentionProduct, Attention, AttentionSoftmax, ContextTranspose, QkvGather,
                   Normalization, QueryKeyNorm, Activation, Rotary, ResidualAdd, Dropout,
                   AdapterAdd, AdapterScale, TokenEmbedding, PositionEmbedding, ZeroTableGradient,
                   CrossEntropy, ContextCopy, PartialMerge, BiasGradient, Accumulate, Cast,
                   ZeroGradients, UnscaleGradients, SquaredNorm, ClipGradients, OptimizerUpdate,
                   UnitCopy, Alias, Collective, GroupedGemm, RouterScores, TokenPermutation,
                   ExpertActivation, ExpertBias, RouterLoad, BalanceUpdate, SharedGate, HostRead,
                   LatentRotary, JoinRows, JoinColumns>;

  const char* name;  // for people: "qkv", "attention", "mlp_up"; a literal
  Phase phase;
  Work work;
  std::vector<BufferId> reads;
  std::vector<BufferId> writes;
  // Weights of its block that it reads forward, and whose gradients it writes backward.
  std::vector<ParameterId> parameters = {};
  BlockStream stream = BlockStream::kCompute;
  // By stream: the latest earlier operation of the pass that must have ended (-1: none). An
  // operation follows those of its own stream without being told (program/block_events.h).
  std::array<std::int32_t, kBlockStreams> after{-1, -1, -1};
  GraphPart graph_part = GraphPart::kNone;
  // Weights, of experts, for which a framework may do this one by one.
  std::int64_t groups = 1;
};

// The product that it is, with a weight or of attention's parts; nothing for other work.
std::optional<Gemm> product_of(const Operation::Work& work);

// The memory-bound kernel that it is; nothing for other work.
std::optional<MemoryBound> memory_bound(const Operation::Work& work);
// Returns its size, to change it; null for other work.
KernelSize* size_of_kernel(Operation::Work& work);

// A kernel runs: it is neither a collective, nor another name, nor a copy that this project's
// executor does without, nor a wait of the host, and not over nothing.
bool runs_kernel(const Operation::Work& work);

// Floating-point operations; 0 for memory-bound kernels and collectives.
Flops flops_of(const Operation& operation);

}  // namespace stepcast
