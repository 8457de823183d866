// SPDX-License-Identifier: Apache-2.0
// Weights before the first step: a function of the seed, the layer, the parameter's name and the
// place in the whole matrix, so that every layout starts from the same model.
#pragma once

#include <cstdint>

#include "layout/rank_grid.h"

namespace stepcast {

struct Layout;
struct Parameter;

inline constexpr std::int64_t kEmbeddingLayer = -1;
inline constexpr std::int64_t kHeadLayer = -2;     // and below: of the head's prediction modules
inline constexpr float kInitialDeviation = 0.02F;  // Radford et al. 2019

// Which part of the model's matrices a rank holds: its place among those that cut dense ones, among
// those that cut experts, and among those that experts are dealt among.
struct ModelPart {
  struct Place {
    std::int64_t ranks = 1, rank = 0;
  };
  Place tensor, expert_tensor, experts;
};
ModelPart part_of(const Layout& layout, const RankGrid& grid, RankId rank);

// Finds this rank's part of a parameter in the whole one, in which the matrices of experts lie one
// after the other, as many for each rank.
struct WholePlace {
  WholePlace(const Parameter& parameter, const ModelPart& part);
  std::int64_t columns;  // of the whole
  std::int64_t elements;
  // The index of a local element in the whole parameter, in row-major order.
  std::int64_t index(std::int64_t row, std::int64_t column) const;

 private:
  std::int64_t index_in_one(std::int64_t row, std::int64_t column) const;

  const Parameter& parameter_;
  ModelPart::Place cut_;
  std::int64_t rows_;   // of one matrix, on this rank
  std::int64_t first_;  // element of the whole that this rank's matrices begin with
};

// Fills parameter.elements() values.
void initial_weights(std::uint64_t seed, std::int64_t layer, const Parameter& parameter,
                     const ModelPart& part, float* out);

}  // namespace stepcast
