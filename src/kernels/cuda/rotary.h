// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding, as on the CPU. T is float, Bf16 or Fp16. Angles are in
// double, their sines and cosines come from a table in fp32.
#pragma once

#include <cstdint>

#include "kernels/cuda/half_types.h"
#include "kernels/cuda/stream.h"
#include "kernels/shapes.h"
#include "kernels/strided.h"

namespace stepcast::cuda {

// Writes for each token cosines of head_dim/2 angles, then sines: sequence*head_dim elements.
void rotary_table(std::int64_t sequence, std::int64_t head_dim, float* table, Stream stream,
                  const SequencePlaces& places = {});

// Queries or keys. In place where `out` is `in`.
template <typename T>
struct RotarySide {
  std::int64_t heads;
  Heads<const T> in;
  Heads<T> out;
};

// Turns both in one kernel, which so reads the table once. Backward turns the other way. head_dim
// is even.
template <typename T>
void rotary(std::int64_t batch, std::int64_t sequence, std::int64_t head_dim,
            const RotarySide<T>& query, const RotarySide<T>& key, const float* table, bool backward,
            Stream stream);

}  // namespace stepcast::cuda
