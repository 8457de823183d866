// SPDX-License-Identifier: Apache-2.0
// The fitted form of the GEMM surface: tiles, waves, k loop, memory traffic (docs/cost-models.md,
// "GEMM"). Local corrections by measured samples are cost/sample_surface.h.
#pragma once

#include "cluster/accelerator.h"
#include "cost/profile.h"

namespace stepcast {

struct Gemm;

// Dense matrix peak for operands of `type`; without one, that of the next wider type that has one.
FlopsPerSecond matrix_peak(const Accelerator& accelerator, DataType type);

Bytes traffic_of(const Gemm& gemm);  // operands once, result once, twice when it accumulates

// The product that a sample was measured with; `type` is that of its operands.
Gemm gemm_of(const GemmSample& sample, DataType type);

// Time of the form alone, on a device with `accelerator`'s SMs, peak and memory bandwidth.
Seconds gemm_form_time(const GemmFit& fit, const Accelerator& accelerator, const Gemm& gemm,
                       Pace pace = Pace::kBackToBack);

// Time of a grouped product: `gemm.batch` groups of the mean size that `gemm` has.
Seconds grouped_form_time(const GroupedFit& grouped, const GemmFit& fit,
                          const Accelerator& accelerator, const Gemm& gemm,
                          Pace pace = Pace::kBackToBack);

}  // namespace stepcast
