// SPDX-License-Identifier: Apache-2.0
// How much longer kernels of each kind take than a copy of as many bytes, by measured kernels of
// one architecture's devices (docs/cost-models.md, "Memory-bound").
#pragma once

#include <vector>

#include "calibrate/fit/fit_error.h"
#include "calibrate/fit/published.h"

namespace stepcast {

// A point, and the factor that it shows.
struct KindPoint {
  MemoryPoint point;
  double factor;
};

// Kinds that consist of elementwise steps. The loss reads long rows, as a reduction does.
bool is_chain(std::size_t kind);

// The factor of a point on a device whose copies reach `rate` bytes/s and whose kernels take
// `overhead_s` each besides.
KindPoint kind_point(const MemoryPoint& point, double rate, double overhead_s);

// Sets the factors of the kinds that have points; chains without points of their own take what all
// steps together show. The error is that of the points against the factors.
FitError fit_kinds(const std::vector<KindPoint>& points, MemoryFit& fit);

}  // namespace stepcast
