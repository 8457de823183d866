// SPDX-License-Identifier: Apache-2.0
// exp of a pack: x = n ln 2 + r with |r| <= ln(2)/2, exp(x) = 2^n exp(r) (Cody and Waite 1980,
// chapter 6), exp(r) by its Taylor series, whose remainder is below half a unit in the last place.
// Within 2 units of it. 0 where the result would be subnormal; saturates near the largest number;
// NaN stays NaN.
#pragma once

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
  static constexpr int kTerms = 13;  // (ln(2)/2)^14/14! = 4e-18
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
STEPCAST_INLINE Pack<T> exponential(const Pack<T>& x) {
  using Constants = ExpConstants<T>;
  using Bits = typename PackTypes<T>::Bits;
  constexpr T kLog2OfE = T(1.442695040888963407359924681001892137);
  const Pack<T> low = broadcast(Constants::kLow);
  const Pack<T> high = broadcast(Constants::kHigh);
  Pack<T> bounded = x < low ? low : x;
  bounded = bounded > high ? high : bounded;
  const Pack<T> rounded = bounded * kLog2OfE + Constants::kRound;
  const Pack<T> n = rounded - Constants::kRound;
  const Pack<T> r = bounded - n * Constants::kLn2High - n * Constants::kLn2Low;
  T factorial = 1;
  for (int k = 2; k <= Constants::kTerms; ++k) factorial *= T(k);
  Pack<T> series = broadcast(1 / factorial);
  for (int k = Constants::kTerms; k > 0; --k) {
    factorial /= T(k);
    series = series * r + 1 / factorial;
  }
  Bits bits;
  std::memcpy(&bits, &rounded, sizeof(bits));
  bits = (bits << Constants::kMantissaBits) + Constants::kOne;
  Pack<T> power;
  std::memcpy(&power, &bits, sizeof(power));
  return x < low ? Pack<T>{} : series * power;
}

}  // namespace stepcast::cpu
