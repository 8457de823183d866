// SPDX-License-Identifier: Apache-2.0
#include "predict/interval.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>

#include "predict/prediction.h"

namespace stepcast {
namespace {

// Recorded runs of one and the same layout differ by this much between machines and days: no
// forecast is surer.
constexpr double kRepeatable = 0.03;

constexpr double kNormal95 = 1.6448536269514722;  // quantile of the standard normal at 0.95

// The caching allocator alone takes 3 to 10 % more than the tensors, and the middle is forecast
// (memory/device_footprint.cpp).
constexpr double kAllocator = 0.035;

// How far what is not known reaches down, of how far it reaches up: what is not modelled takes
// time.
constexpr double kDownwards = 0.5;

double normal_quantile(double probability) {
  return boost::math::quantile(boost::math::normal(), probability);
}

}  // namespace

Interval interval90(Seconds step_time, const std::array<Seconds, kCurves>& time_by_curve,
                    const std::array<double, kCurves>& sigma,
                    const std::vector<std::string>& mechanisms, const MeasuredErrors& errors) {
  Interval out;
  double doubt = 0;
  for (const std::string& mechanism : mechanisms) {
    if (errors.proves(mechanism)) continue;
    out.unproven.push_back(mechanism);
    doubt += errors.doubt(mechanism);
  }
  Seconds all(0);
  for (const Seconds time : time_by_curve) all += time;
  double variance = std::pow(kNormal95 * kRepeatable, 2);
  for (std::size_t c = 0; c < kCurves && all.value() > 0; ++c) {
    variance += std::pow(time_by_curve[c] / all * sigma[c], 2);
  }
  // Both sides are logarithms, from the forecast outwards. The errors of runs contain those of the
  // curves, whose typical error is the least that a forecast may miss by.
  double low = std::sqrt(variance), high = low;
  if (const auto band = errors.times_near(mechanisms)) {
    low = std::max(low, -band->low);
    high = std::max(high, band->high);
  }
  const double unknown = kNormal95 * errors.of_unknown() * std::sqrt(doubt);
  out.low = step_time * std::exp(-std::hypot(low, kDownwards * unknown));
  out.high = step_time * std::exp(std::hypot(high, unknown));
  return out;
}

MemoryInterval memory_interval90(ByteCount peak, const std::vector<std::string>& mechanisms,
                                 const MeasuredErrors& errors) {
  double low = kAllocator, high = kAllocator;
  if (const auto band = errors.memory_near(mechanisms)) {
    low = std::max(low, -band->low);
    high = std::max(high, band->high);
  }
  const auto bytes = static_cast<double>(peak);
  return {static_cast<ByteCount>(bytes * std::exp(-low)),
          static_cast<ByteCount>(bytes * std::exp(high))};
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
