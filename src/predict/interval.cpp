// SPDX-License-Identifier: Apache-2.0
#include "predict/interval.h"

#include <cmath>

namespace stepcast {
namespace {

// The log-error of everything that no curve holds: software versions, clocks, memory pressure, the
// shape of a framework's step. It is the spread of the published cases that assume nothing
// (docs/accuracy.md), beyond what their curves explain, and keeps nine in ten of them inside the
// interval.
constexpr double kStructural = 0.09;

}  // namespace

std::pair<Seconds, Seconds> interval90(Seconds step_time,
                                       const std::array<Seconds, kCurves>& time_by_curve,
                                       const std::array<double, kCurves>& sigma) {
  Seconds all(0);
  for (const Seconds time : time_by_curve) all += time;
  if (all.value() <= 0) return {step_time, step_time};
  double variance = kStructural * kStructural;
  for (std::size_t c = 0; c < kCurves; ++c) {
    const double term = time_by_curve[c] / all * sigma[c];
    variance += term * term;
  }
  constexpr double kNormal95 = 1.6448536269514722;  // quantile of the standard normal at 0.95
  const double width = std::exp(kNormal95 * std::sqrt(variance));
  return {step_time / width, step_time * width};
}

}  // namespace stepcast
