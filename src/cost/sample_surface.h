// SPDX-License-Identifier: Apache-2.0
// Scattered log-residuals of measured samples against a fitted form, interpolated by Gaussian
// weights that vanish away from the samples. What a point means is the caller's: axes are octaves.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <vector>

namespace stepcast {

class SampleSurface {
 public:
  static constexpr std::size_t kAxes = 6;
  using Point = std::array<double, kAxes>;

  // `reach` is the standard deviation of a sample's influence along every axis, `shrinkage` the
  // weight of a residual of zero that every query also sees.
  SampleSurface(double reach, double shrinkage) : reach_(reach), shrinkage_(shrinkage) {}

  void add(const Point& point, double log_residual);  // log(measured / form)
  bool empty() const { return samples_.empty(); }

  struct Correction {
    double log_factor = 0;
    double distance = std::numeric_limits<double>::infinity();  // to the nearest sample, in octaves
    bool inside = false;  // between the smallest and the largest sample on every axis
  };
  // A sample at distance 0 is returned as it is.
  Correction at(const Point& point) const;

 private:
  struct Sample {
    Point point;
    double log_residual;
  };
  double reach_;
  double shrinkage_;
  std::vector<Sample> samples_;
  Point low_{}, high_{};
};

}  // namespace stepcast
