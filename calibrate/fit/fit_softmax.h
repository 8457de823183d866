// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "calibrate/fit/fit_attention.h"
#include "cost/kernel_cost.h"

namespace stepcast {

// Time factor of a softmax kernel over streaming its traffic, from charts of unfused attention in
// PyTorch: what the measured time leaves once the batched products are priced, over the streaming
// time of PyTorch's softmax. Median over the points of long sequences.
double fit_softmax_factor(const KernelCosts& costs,
                          const std::vector<AttentionMeasurement>& unfused);

}  // namespace stepcast
