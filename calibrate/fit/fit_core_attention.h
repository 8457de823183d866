// SPDX-License-Identifier: Apache-2.0
// Fits the attention form (docs/cost-models.md, "Attention") to kernels measured on a processor's
// core, in fp32. What SMs and blocks need is fixed.
#pragma once

#include <vector>

#include "calibrate/fit/fit_attention.h"

namespace stepcast {

// Samples of both directions, as fractions of the fp32 peak. A direction with fewer than 4 samples,
// or without two lengths of keys that differ by a factor of 2, is scaled as a whole; one without
// any keeps the family's form against the other one. The held-out error is that of the form and of
// the samples around, each sample left out of both.
AttentionCurve fit_attention_on_core(const Accelerator& accelerator,
                                     const std::vector<AttentionSample>& samples,
                                     const AttentionFit& family);

}  // namespace stepcast
