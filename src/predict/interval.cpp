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
  double low = kNormal95 * kRepeatable, high = low;  // of the logarithm, from the forecast outwards
  Interval out;
  for (const std::string& mechanism : mechanisms) {
    if (const ErrorBand* band = errors.find(mechanism)) {
      low = std::max(low, -band->low);
      high = std::max(high, band->high);
    } else {
      out.unproven.push_back(mechanism);
    }
  }
  Seconds all(0);
  for (const Seconds time : time_by_curve) all += time;
  double variance = 0;
  for (std::size_t c = 0; c < kCurves && all.value() > 0; ++c) {
    const double term = time_by_curve[c] / all * sigma[c];
    variance += term * term;
  }
  const double unknown = errors.of_unknown() * errors.of_unknown();
  const double above = variance + static_cast<double>(out.unproven.size()) * unknown;
  out.low = step_time * std::exp(-std::hypot(low, kNormal95 * std::sqrt(variance)));
  out.high = step_time * std::exp(std::hypot(high, kNormal95 * std::sqrt(above)));
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
