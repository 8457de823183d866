// SPDX-License-Identifier: Apache-2.0
#include "report/html/value_axis.h"

#include <algorithm>
#include <cmath>

#include "report/html/time_axis.h"

namespace stepcast::html {
namespace {

constexpr double kRoom = 0.04;         // beyond the outermost values
constexpr double kNearZero = 1.0 / 3;  // of the outermost value: such values begin at zero
constexpr int kValueTicks = 6;
constexpr double kFewDecades = 3;  // up to so many, ticks at 1, 2 and 5
constexpr std::size_t kFewTicks = 3;

}  // namespace

ValueAxis::ValueAxis(Scale scale, const std::vector<double>& values) : scale_(scale) {
  bool any = false;
  for (const double value : values) {
    if (!std::isfinite(value) || (scale == Scale::kLogarithmic && value <= 0)) continue;
    const double at = scale == Scale::kLogarithmic ? std::log10(value) : value;
    begin_ = any ? std::min(begin_, at) : at;
    end_ = any ? std::max(end_, at) : at;
    any = true;
  }
  if (!any) {
    begin_ = 0;
    end_ = 1;
  }
  if (scale == Scale::kLinear) {
    if (begin_ > 0 && begin_ < kNearZero * end_) begin_ = 0;
    if (end_ < 0 && end_ > kNearZero * begin_) end_ = 0;
  }
  const double room = end_ > begin_ ? (end_ - begin_) * kRoom : 0.5;
  if (scale == Scale::kLogarithmic || begin_ != 0) begin_ -= room;
  if (scale == Scale::kLogarithmic || end_ != 0) end_ += room;
  if (end_ <= begin_) end_ = begin_ + 1;
}

double ValueAxis::place(double value) const {
  const double at = scale_ == Scale::kLogarithmic ? std::log10(std::max(value, 1e-300)) : value;
  return (at - begin_) / (end_ - begin_);
}

std::vector<double> ValueAxis::ticks() const {
  if (scale_ == Scale::kLinear) return round_ticks(begin_, end_, kValueTicks);
  std::vector<double> out;
  for (double decade = std::floor(begin_); decade <= end_; ++decade) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor > 1 && end_ - begin_ > kFewDecades) continue;
      const double at = decade + std::log10(factor);
      if (at >= begin_ && at <= end_) out.push_back(std::pow(10, decade) * factor);
    }
  }
  // Within an octave or so the scale is nearly linear, and its round numbers are those.
  if (out.size() < kFewTicks)
    return round_ticks(std::pow(10, begin_), std::pow(10, end_), kValueTicks);
  return out;
}

}  // namespace stepcast::html
