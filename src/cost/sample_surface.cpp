// SPDX-License-Identifier: Apache-2.0
#include "cost/sample_surface.h"

#include <algorithm>
#include <cmath>

namespace stepcast {

void SampleSurface::add(const Point& point, double log_residual) {
  if (samples_.empty()) low_ = high_ = point;
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    low_[axis] = std::min(low_[axis], point[axis]);
    high_[axis] = std::max(high_[axis], point[axis]);
  }
  samples_.push_back({point, log_residual});
}

SampleSurface::Correction SampleSurface::at(const Point& point) const {
  Correction out;
  const double inverse = 0.5 / (reach_ * reach_);
  // Beyond four standard deviations a weight is below 1e-3 of a sample's.
  const double cutoff = 16 * reach_ * reach_;
  double nearest = std::numeric_limits<double>::infinity(), weights = 0, sum = 0;
  double exact = 0;
  for (const Sample& sample : samples_) {
    double squared = 0;
    for (std::size_t axis = 0; axis < kAxes; ++axis) {
      const double difference = point[axis] - sample.point[axis];
      squared += difference * difference;
    }
    if (squared < nearest) {
      nearest = squared;
      exact = sample.log_residual;
    }
    if (squared > cutoff) continue;
    const double weight = std::exp(-squared * inverse);
    weights += weight;
    sum += weight * sample.log_residual;
  }
  out.distance = std::sqrt(nearest);
  out.inside = !samples_.empty();
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    out.inside = out.inside && point[axis] >= low_[axis] && point[axis] <= high_[axis];
  }
  out.log_factor = nearest == 0 ? exact : sum / (weights + shrinkage_);
  return out;
}

}  // namespace stepcast
