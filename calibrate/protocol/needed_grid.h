// SPDX-License-Identifier: Apache-2.0
// Adds to what a scenario needs, so that others are interpolated: kernels around and between the
// needed ones (calibrate/protocol/sweep_grid.h), and messages of other sizes.
#pragma once

#include <cstdint>

#include "calibrate/protocol/needed_shapes.h"

namespace stepcast {

struct GridOptions {
  std::int64_t gemms = 12;        // extra shapes, for each role, types, and single or batched
  std::int64_t attentions = 8;    // for each direction, mask, head dimension and sharing of keys
  std::int64_t elementwises = 2;  // extra sizes of each kernel
  double around_octaves = 1;      // of a needed shape's surroundings
  double largest = 2;             // product of an extra shape's sizes over the largest needed one
  ByteCount smallest_message = 1024;
  std::uint64_t seed = 1;
};

// It holds none of `needed`. Messages go from the smallest to 4 times the largest needed, each
// 4 times the one before, rounded up to whole elements for each member.
NeededMeasurements grid(const NeededMeasurements& needed, const GridOptions& options = {});

}  // namespace stepcast
