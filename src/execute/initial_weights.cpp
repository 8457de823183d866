// SPDX-License-Identifier: Apache-2.0
#include "execute/initial_weights.h"

#include <algorithm>
#include <string_view>
#include <thread>

#include "core/parallel.h"

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

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
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

WholePlace::WholePlace(const Parameter& parameter, std::int64_t tp, std::int64_t tp_rank)
    : columns(parameter.columns * (parameter.cut == Cut::kColumns ? tp : 1)),
      elements(parameter.elements() * (parameter.cut == Cut::kNone ? 1 : tp)),
      parameter_(parameter),
      tp_(tp),
      tp_rank_(tp_rank) {}

std::int64_t WholePlace::index(std::int64_t row, std::int64_t column) const {
  if (parameter_.cut == Cut::kNone) return row * columns + column;
  if (parameter_.cut == Cut::kColumns) {
    return row * columns + tp_rank_ * parameter_.columns + column;
  }
  if (parameter_.parts[0] == 0) return (tp_rank_ * parameter_.rows + row) * columns + column;
  std::int64_t begin = 0;  // of the part, on this rank
  for (const std::int64_t part : parameter_.parts) {
    if (row < begin + part) {
      return (begin * tp_ + tp_rank_ * part + (row - begin)) * columns + column;
    }
    begin += part;
  }
  return row * columns + column;
}

void initial_weights(std::uint64_t seed, std::int64_t layer, const Parameter& parameter,
                     std::int64_t tp, std::int64_t tp_rank, float* out) {
  if (parameter.initial != Initial::kNormal) {
    std::fill_n(out, parameter.elements(), parameter.initial == Initial::kOnes ? 1.0F : 0.0F);
    return;
  }
  const WholePlace place(parameter, tp, tp_rank);
  const std::uint64_t key =
      mix(seed ^ mix(hash_of(parameter.name) ^ mix(static_cast<std::uint64_t>(layer))));
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
