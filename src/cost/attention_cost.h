// SPDX-License-Identifier: Apache-2.0
// The fitted form of fused attention (docs/cost-models.md, "Attention").
#pragma once

#include "cluster/accelerator.h"
#include "cost/profile.h"

namespace stepcast {

struct Attention;

Bytes traffic_of(const Attention& attention);

// The mean of queries and values, where they differ: what kernels of the same work have.
std::int64_t mean_head_dim(const Attention& attention);

Seconds attention_form_time(const AttentionFit& fit, const Accelerator& accelerator,
                            const Attention& attention, Pace pace = Pace::kBackToBack);

}  // namespace stepcast
