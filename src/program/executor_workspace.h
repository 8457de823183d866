// SPDX-License-Identifier: Apache-2.0
// Device memory that the executor's libraries take on a GPU beside the tensors of a program.
#pragma once

#include "core/data_type.h"
#include "core/quantity.h"

namespace stepcast {

struct Attention;
struct Program;
struct Role;

// Attention in 16 bits is computed by our own kernels, by cuDNN with the same bits every time, or
// by cuDNN with gradients of queries summed by atomics.
enum class AttentionBy { kOwnKernels, kSameBits, kAtomics };

// One call takes this. Our own kernels sum the gradients of keys and values in parts if few heads
// have keys (attention_key_sums() in kernels/cuda/attention.h). cuDNN backward keeps the gradient
// of every score in 16 bits, or sums of the queries' gradients in fp32; and where heads share keys,
// both gradients of each query head. So cuDNN 9.19 plans it
// (`CudnnPlan.WorkspaceIsThatOfTheForecast`).
ByteCount attention_workspace(const Attention& attention, AttentionBy by);

// A norm that writes fp8 goes through so many rows at a time.
std::int64_t rows_of_norms_to_fp8(std::int64_t width, DataType type);

// One rank's: that of cuBLASLt, that of attention, which is as large as the largest call wants, and
// the sines and cosines of rotary positions.
ByteCount executor_workspace(const Program& program, const Role& role, AttentionBy by);

}  // namespace stepcast
