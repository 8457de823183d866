// SPDX-License-Identifier: Apache-2.0
// Random numbers that are the same on every machine and with every library: SplitMix64 (Steele, Lea
// and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014, figure 15). The
// standard library's engines are portable, its distributions are not.
#pragma once

#include <cstdint>

namespace stepcast {

class SeededRandom {
 public:
  explicit constexpr SeededRandom(std::uint64_t seed) : state_(seed) {}
  // The `stream`-th sequence of a seed: always the same for the same arguments.
  constexpr SeededRandom(std::uint64_t seed, std::uint64_t stream)
      : state_(mixed(mixed(seed + kGamma) + stream * kGamma)) {}

  constexpr std::uint64_t bits() { return mixed(state_ += kGamma); }
  // In [0, 1), a multiple of 2^-53.
  constexpr double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  // In [0, count); no value is likelier than another by more than count/2^53.
  constexpr std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(uniform() * static_cast<double>(count));
  }

 private:
  static constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15;
  static constexpr std::uint64_t mixed(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::uint64_t state_;
};

}  // namespace stepcast
