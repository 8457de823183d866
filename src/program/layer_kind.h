// SPDX-License-Identifier: Apache-2.0
// The decoder layers of one model differ by these traits: each kind is lowered once.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

namespace stepcast {

struct Scenario;

struct LayerKind {
  bool experts = false;   // instead of a dense MLP
  bool windowed = false;  // attention within a window shorter than the sequence
  bool wide = false;      // in 16 bits, where others multiply in fp8 or fp4
  auto operator<=>(const LayerKind&) const = default;
};

// Returns the kind of the model's layer `layer`, counted from 0.
LayerKind kind_of(const Scenario& scenario, std::int64_t layer);
// Lists the kinds that the model has, ascending.
std::vector<LayerKind> layer_kinds(const Scenario& scenario);

}  // namespace stepcast
