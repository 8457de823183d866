// SPDX-License-Identifier: Apache-2.0
#include "execute/initial_weights.h"

#include <algorithm>
#include <thread>

#include "core/fnv1a.h"
#include "core/parallel.h"
#include "layout/layout.h"
#include "program/program.h"

namespace stepcast {
namespace {

// SplitMix64's finaliser (Steele et al. 2014): every bit of the input reaches every bit of the
// output.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

// Sum of four uniforms: mean 2, variance 1/3; close enough to a normal for weights.
float near_normal(std::uint64_t bits) {
  float sum = 0;
  for (unsigned i = 0; i < 4; ++i) {
    sum += (static_cast<float>((bits >> (16 * i)) & 0xffffU) + 0.5F) / 65536.0F;
  }
  return (sum - 2.0F) * 1.7320508F;
}

// Large models have billions of weights, so several threads share the work.
constexpr std::int64_t kOfOneThread = 1 << 20;

}  // namespace

ModelPart part_of(const Layout& layout, const RankGrid& grid, RankId rank) {
  return {{layout.tp, grid.coordinate(Axis::kTp, rank)},
          {layout.etp, grid.coordinate(Axis::kEtp, rank)},
          {layout.ep, grid.coordinate(Axis::kEp, rank)}};
}

WholePlace::WholePlace(const Parameter& parameter, const ModelPart& part) : parameter_(parameter) {
  const bool of_experts = parameter.copies > 1 || parameter.replicas == AxisGroup::kExpertData;
  cut_ = of_experts ? part.expert_tensor : part.tensor;
  if (parameter.cut == Cut::kNone) cut_ = {};
  columns = parameter.columns * (parameter.cut == Cut::kColumns ? cut_.ranks : 1);
  rows_ = parameter.rows / parameter.copies;
  const std::int64_t held = parameter.elements() * cut_.ranks;  // with what is cut off
  elements = held * (of_experts ? part.experts.ranks : 1);
  first_ = of_experts ? held * part.experts.rank : 0;
}

std::int64_t WholePlace::index(std::int64_t row, std::int64_t column) const {
  const std::int64_t matrix = parameter_.elements() / parameter_.copies * cut_.ranks;
  return first_ + row / rows_ * matrix + index_in_one(row % rows_, column);
}

std::int64_t WholePlace::index_in_one(std::int64_t row, std::int64_t column) const {
  if (parameter_.cut == Cut::kNone) return row * columns + column;
  if (parameter_.cut == Cut::kColumns) {
    return row * columns + cut_.rank * parameter_.columns + column;
  }
  if (parameter_.parts[0] == 0) return (cut_.rank * rows_ + row) * columns + column;
  std::int64_t begin = 0;  // of the part, on this rank
  for (const std::int64_t part : parameter_.parts) {
    if (row < begin + part) {
      return (begin * cut_.ranks + cut_.rank * part + (row - begin)) * columns + column;
    }
    begin += part;
  }
  return row * columns + column;
}

void initial_weights(std::uint64_t seed, std::int64_t layer, const Parameter& parameter,
                     const ModelPart& part, float* out) {
  if (parameter.initial != Initial::kNormal) {
    std::fill_n(out, parameter.elements(), parameter.initial == Initial::kOnes ? 1.0F : 0.0F);
    return;
  }
  const WholePlace place(parameter, part);
  const std::uint64_t key =
      mix(seed ^ mix(fnv1a(parameter.name) ^ mix(static_cast<std::uint64_t>(layer))));
  const std::int64_t cores = std::thread::hardware_concurrency();
  const auto threads = static_cast<int>(std::min(cores, parameter.elements() / kOfOneThread));
  run_in_parallel(threads, static_cast<std::size_t>(parameter.rows),
                  [&](std::size_t, std::size_t i) {
                    const auto row = static_cast<std::int64_t>(i);
                    float* next = out + row * parameter.columns;
                    for (std::int64_t column = 0; column < parameter.columns; ++column) {
                      const auto index = static_cast<std::uint64_t>(place.index(row, column));
                      *next++ = kInitialDeviation * near_normal(mix(key + index));
                    }
                  });
}

}  // namespace stepcast
