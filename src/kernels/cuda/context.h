// SPDX-License-Identifier: Apache-2.0
// Kernels of context parallelism, as on the CPU (kernels/cpu/context.h). Sums are in fp32.
#pragma once

#include "kernels/arguments.h"
#include "kernels/cuda/half_types.h"
#include "kernels/cuda/stream.h"

namespace stepcast::cuda {

// From and To are float, Bf16 or Fp16, as the arrays are.
template <typename From, typename To>
void move_spread_rows(const SpreadRowsArguments& call, Stream stream);

// Context is T or float.
template <typename T, typename Context>
void merge_part(const MergedPartArguments& call, Stream stream);

}  // namespace stepcast::cuda
