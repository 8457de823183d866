// SPDX-License-Identifier: Apache-2.0
// Learned logits of attention, as on the CPU (kernels/cpu/attention_sinks.h). Sums are in fp32, and
// the same bits every time.
#pragma once

#include "kernels/arguments.h"
#include "kernels/cuda/half_types.h"
#include "kernels/cuda/stream.h"

namespace stepcast::cuda {

template <typename T>
void add_sinks(const AttentionSinkArguments& call, Stream stream);
// Gradient is T or float.
template <typename T, typename Gradient>
void sink_gradient(const SinkGradientArguments& call, Stream stream);

}  // namespace stepcast::cuda
