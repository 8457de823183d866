// SPDX-License-Identifier: Apache-2.0
// Weights before the first step: a function of the seed, the layer, the parameter's name and the
// place in the whole matrix, so that every layout starts from the same model.
#pragma once

#include <cstdint>

#include "program/program.h"

namespace stepcast {

inline constexpr std::int64_t kEmbeddingLayer = -1;
inline constexpr std::int64_t kHeadLayer = -2;
inline constexpr float kInitialDeviation = 0.02F;  // Radford et al. 2019

// Where this rank's part of a parameter lies in the whole one.
struct WholePlace {
  WholePlace(const Parameter& parameter, std::int64_t tp, std::int64_t tp_rank);
  std::int64_t columns;  // of the whole
  std::int64_t elements;
  // The index of a local element in the whole parameter, in row-major order.
  std::int64_t index(std::int64_t row, std::int64_t column) const;

 private:
  const Parameter& parameter_;
  std::int64_t tp_, tp_rank_;
};

// Fills parameter.elements() values.
void initial_weights(std::uint64_t seed, std::int64_t layer, const Parameter& parameter,
                     std::int64_t tp, std::int64_t tp_rank, float* out);

}  // namespace stepcast
