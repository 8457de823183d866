// SPDX-License-Identifier: Apache-2.0
#include "predict/interval.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>

namespace stepcast {
namespace {

// Recorded runs of one and the same layout differ by this much between machines and days: no
// forecast is surer.
constexpr double kRepeatable = 0.03;

constexpr double kNormal95 = 1.6448536269514722;  // quantile of the standard normal at 0.95

double normal_quantile(double probability) {
  return boost::math::quantile(boost::math::normal(), probability);
}

}  // namespace

Interval interval90(Seconds step_time, const std::array<Seconds, kCurves>& time_by_curve,
                    const std::array<double, kCurves>& sigma,
                    const std::vector<std::string>& mechanisms, const MeasuredErrors& errors) {
  // Of the logarithm, from the forecast outwards. What few runs have in common tells more of a run
  // than what nearly all have.
  double low = 0, high = 0, weights = 0;
  Interval out;
  for (const std::string& mechanism : mechanisms) {
    const ErrorBand* band = errors.find(mechanism);
    if (band == nullptr) {
      out.unproven.push_back(mechanism);
      continue;
    }
    const double weight = std::log(static_cast<double>(errors.runs()) / band->runs);
    low += weight * -band->low;
    high += weight * band->high;
    weights += weight;
  }
  Seconds all(0);
  for (const Seconds time : time_by_curve) all += time;
  double variance = kRepeatable * kRepeatable;
  for (std::size_t c = 0; c < kCurves && all.value() > 0; ++c) {
    const double term = time_by_curve[c] / all * sigma[c];
    variance += term * term;
  }
  // The errors of runs contain those of the curves. No forecast is surer than either.
  const double least = kNormal95 * std::sqrt(variance);
  low = weights > 0 ? std::max(least, low / weights) : least;
  high = weights > 0 ? std::max(least, high / weights) : least;
  const double unknown =
      kNormal95 * errors.of_unknown() * std::sqrt(static_cast<double>(out.unproven.size()));
  out.low = step_time * std::exp(-low);
  out.high = step_time * std::exp(std::hypot(high, unknown));
  return out;
}

Seconds quantile(const Prediction& prediction, double probability) {
  if (probability == 0.5) return prediction.step_time;
  const double z = normal_quantile(probability);
  const Seconds end = z > 0 ? prediction.step_time_high : prediction.step_time_low;
  const double sigma = std::abs(std::log(end / prediction.step_time)) / kNormal95;
  return prediction.step_time * std::exp(z * sigma);
}

double least_rise(double probability) {
  return probability <= 0.5 ? 1.0 : std::exp(normal_quantile(probability) * kRepeatable);
}

}  // namespace stepcast
