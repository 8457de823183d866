// SPDX-License-Identifier: Apache-2.0
// Fits the memory-bound form (docs/cost-models.md, "Memory-bound") to measured kernels: one
// overhead, and for each kind and pass a time per byte. Kernels that compute more than they load
// (softmax, GELU, cross entropy on a core) get a large factor: the form stays linear in the size.
#pragma once

#include <vector>

#include "calibrate/fit/fit_error.h"
#include "cluster/accelerator.h"
#include "cost/profile.h"
#include "operation/memory_bound.h"

namespace stepcast {

struct TimedKernel {
  MemoryBound kernel;
  double seconds;  // of the whole kernel, its chain fused
};

struct MemoryCurve {
  MemoryFit fit;
  FitError form;
  FitError held_out;  // each point left out whose kind has another
  std::int64_t held_out_points = 0;
};

// Needs a point or more. The factor 1, which kinds without a point keep, stands for the median of
// the kinds that stream (copies, sums, casts, fills, rotations) where one was measured, else of
// all.
MemoryCurve fit_memory_bound(const Accelerator& accelerator, const std::vector<TimedKernel>& points,
                             const MemoryFit& start);

}  // namespace stepcast
