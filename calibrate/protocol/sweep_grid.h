// SPDX-License-Identifier: Apache-2.0
// Shapes to measure so that the costs of other shapes can be interpolated: what is needed now, and
// points around and between it, evenly spread in the logarithm of each dimension. The same input
// gives the same points on every machine.
#pragma once

#include <cstdint>
#include <vector>

namespace stepcast {

using SweepShape = std::vector<std::int64_t>;  // (m, n, k), or whatever a curve's axes are

struct SweepOptions {
  std::int64_t extra = 24;  // points beside the needed ones
  // The extent of a needed shape's surroundings, in factors of two along each dimension.
  double around_octaves = 0.5;
  // Each extra dimension is a multiple of this where it is at least as large: kernels have steps of
  // their own at multiples, and sizes of models are such. Empty: 1.
  std::vector<std::int64_t> multiples = {};
  // Extra points with a larger product of their dimensions are not taken: time and memory.
  double largest_product = 1e18;
  std::uint64_t seed = 1;
};

// The needed shapes without repetitions, in their order, then the extra ones; fewer extra ones than
// asked where rounding leaves no others.
std::vector<SweepShape> sweep_grid(const std::vector<SweepShape>& needed,
                                   const SweepOptions& options = {});

}  // namespace stepcast
