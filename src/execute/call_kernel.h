// SPDX-License-Identifier: Apache-2.0
// Which kernel an operation is run by, and with which arguments: for the executor and for
// calibrations, on whatever device `kernels` are for.
#pragma once

#include <span>

#include "execute/kernel_arrays.h"
#include "operation/operation.h"

namespace stepcast {

// False where nothing is called: of collectives and aliases, of work over all gradients or states
// of a rank (execute/run_state.cpp goes through their pieces), and of dropout and adapters, which
// have no kernels.
bool call_kernel(const Operation::Work& work, KernelArrays& arrays, Kernels& kernels);

NormKind norm_kind(Norm norm);

// Call the kernel of each family of work.
void call(const Gemm& gemm, KernelArrays& arrays, Kernels& kernels);
// The rows of each expert begin where `begins` says, whose last element is the end of all.
void call(const GroupedGemm& grouped, std::span<const std::int64_t> begins, KernelArrays& arrays,
          Kernels& kernels);
void call(const AttentionProduct& product, KernelArrays& arrays, Kernels& kernels);
void call(const Attention& attention, KernelArrays& arrays, Kernels& kernels);
void call(const AttentionSoftmax& softmax, KernelArrays& arrays, Kernels& kernels);
void call(const ContextTranspose& transpose, KernelArrays& arrays, Kernels& kernels);
void call(const QkvGather& gather, KernelArrays& arrays, Kernels& kernels);
void call(const Normalization& norm, KernelArrays& arrays, Kernels& kernels);
void call(const QueryKeyNorm& norm, KernelArrays& arrays, Kernels& kernels);
void call(const Activation& activation, KernelArrays& arrays, Kernels& kernels);
void call(const Rotary& rotary, KernelArrays& arrays, Kernels& kernels);
void call(const ResidualAdd& sum, KernelArrays& arrays, Kernels& kernels);  // without dropout
void call(const TokenEmbedding& embedding, KernelArrays& arrays, Kernels& kernels);
void call(const PositionEmbedding& embedding, KernelArrays& arrays, Kernels& kernels);
void call(const ZeroTableGradient& zero, KernelArrays& arrays, Kernels& kernels);
void call(const CrossEntropy& loss, KernelArrays& arrays, Kernels& kernels);
void call(const BiasGradient& gradient, KernelArrays& arrays, Kernels& kernels);
void call(const Accumulate& sum, KernelArrays& arrays, Kernels& kernels);
void call(const Cast& cast, KernelArrays& arrays, Kernels& kernels);
// The next ones are kernels of kernels.variants().
void call(const LatentRotary& rotary, KernelArrays& arrays, Kernels& kernels);
void call(const JoinColumns& join, KernelArrays& arrays, Kernels& kernels);
void call(const JoinRows& join, KernelArrays& arrays, Kernels& kernels);

}  // namespace stepcast
