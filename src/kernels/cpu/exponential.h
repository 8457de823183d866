// SPDX-License-Identifier: Apache-2.0
// exp of a pack: x = n ln 2 + r with |r| <= ln(2)/2, exp(x) = 2^n exp(r) (Cody and Waite 1980,
// chapter 6), exp(r) by its Taylor series, whose remainder is below half a unit in the last place.
// Within 2 units of it. 0 where the result would be subnormal, infinite from 0.7 of the largest
// number on. NaN stays NaN.
#pragma once

#include <array>
#include <limits>

#include "kernels/cpu/pack.h"

namespace stepcast::cpu {

template <typename T>
struct ExpConstants;
template <>
struct ExpConstants<float> {
  static constexpr int kTerms = 7;                // (ln(2)/2)^8/8! = 5e-9
  static constexpr float kLow = -87.3365F;        // 2^-126, the smallest normal number
  static constexpr float kHigh = 88.37F;          // n is at most 127
  static constexpr float kRound = 0x1.8p23F;      // adding it leaves the integer in the low bits
  static constexpr float kLn2High = 0x1.62ep-1F;  // few bits: n times it is exact
  static constexpr float kLn2Low = static_cast<float>(0x1.62e42fefa39efp-1 - 0x1.62ep-1);
  static constexpr int kMantissaBits = 23;
  static constexpr std::uint32_t kOne = 0x3f800000;
};
template <>
struct ExpConstants<double> {
  static constexpr int kTerms = 13;  // odd; (ln(2)/2)^14/14! = 4e-18
  static constexpr double kLow = -708.396;
  static constexpr double kHigh = 709.43;
  static constexpr double kRound = 0x1.8p52;
  static constexpr double kLn2High = 0x1.62e42fep-1;
  // ln 2 = 0x1.62e42fefa39ef35793c7673...p-1
  static constexpr double kLn2Low = 0x1.f473de6af278fp-30;
  static constexpr int kMantissaBits = 52;
  static constexpr std::uint64_t kOne = 0x3ff0000000000000;
};

template <typename T>
inline constexpr auto kInverseFactorials = [] {
  std::array<T, ExpConstants<T>::kTerms + 1> inverse{};
  double factorial = 1;
  for (std::size_t k = 0; k < inverse.size(); ++k) {
    factorial *= k == 0 ? 1.0 : static_cast<double>(k);
    inverse[k] = T(1 / factorial);
  }
  return inverse;
}();

template <typename T>
STEPCAST_INLINE Pack<T> exponential(const Pack<T>& x) {
  using Constants = ExpConstants<T>;
  using Bits = typename PackTypes<T>::Bits;
  constexpr T kLog2OfE = T(1.442695040888963407359924681001892137);
  const Pack<T> rounded = x * kLog2OfE + Constants::kRound;
  const Pack<T> n = rounded - Constants::kRound;
  const Pack<T> r = x - n * Constants::kLn2High - n * Constants::kLn2Low;
  // Odd and even terms apart: half as long a chain of dependent operations.
  constexpr auto kInverse = kInverseFactorials<T>;
  constexpr int kTerms = Constants::kTerms;
  const Pack<T> square = r * r;
  Pack<T> odd = broadcast(kInverse[kTerms]);
  Pack<T> even = broadcast(kInverse[kTerms - 1]);
  for (int k = kTerms - 2; k > 0; k -= 2) {
    odd = odd * square + kInverse[static_cast<std::size_t>(k)];
    even = even * square + kInverse[static_cast<std::size_t>(k - 1)];
  }
  const Pack<T> series = odd * r + even;
  Bits bits;
  std::memcpy(&bits, &rounded, sizeof(bits));
  bits = (bits << Constants::kMantissaBits) + Constants::kOne;
  Pack<T> power;
  std::memcpy(&power, &bits, sizeof(power));
  // Outside the range the value computed above is meaningless, so it is replaced.
  const Pack<T> infinite = broadcast(std::numeric_limits<T>::infinity());
  const Pack<T> bounded = x > broadcast(Constants::kHigh) ? infinite : series * power;
  return x < broadcast(Constants::kLow) ? Pack<T>{} : bounded;
}

}  // namespace stepcast::cpu
