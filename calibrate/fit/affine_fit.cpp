// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/affine_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stepcast {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

struct Line {
  double latency_s = 0;
  double seconds_per_byte = 0;
  double at(double size) const { return latency_s + seconds_per_byte * size; }
};

// Minimises the sum of (a/t + b x/t - 1)^2 over a, b >= 0, without the point `left_out`.
Line fit_line(const std::vector<TimedSize>& points, std::size_t left_out) {
  // Sizes in units of the largest: the normal equations stay well conditioned.
  const double unit = points.back().size.value();
  double uu = 0, uv = 0, vv = 0, u = 0, v = 0;  // sums of products of u = 1/t, v = x/t
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i == left_out) continue;
    const double a = 1 / points[i].time.value();
    const double b = points[i].size.value() / unit * a;
    uu += a * a;
    uv += a * b;
    vv += b * b;
    u += a;
    v += b;
  }
  const double determinant = uu * vv - uv * uv;
  // Points of one size alone say nothing of a rate.
  double latency = u / uu, slope = 0;
  if (determinant > 1e-12 * uu * vv) {
    latency = (vv * u - uv * v) / determinant;
    slope = (uu * v - uv * u) / determinant;
    if (slope < 0) {
      latency = u / uu;
      slope = 0;
    } else if (latency < 0) {
      latency = 0;
      slope = v / vv;
    }
  }
  return {latency, slope / unit};
}

FitError errors_of(const std::vector<TimedSize>& points, bool held_out) {
  std::vector<double> ratios;
  const Line all = fit_line(points, kNone);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Line line = held_out ? fit_line(points, i) : all;
    // A line through the origin is 0 at size 0: as far off as an error can be.
    const double predicted = std::max(line.at(points[i].size.value()), 1e-30);
    ratios.push_back(std::log(predicted / points[i].time.value()));
  }
  return fit_error(ratios);
}

}  // namespace

Result<AffineFit> fit_affine(std::vector<TimedSize> points) {
  constexpr std::size_t kFewest = 3;  // two fix the line, the third can disagree
  const auto bad = [](std::string message, std::string hint) {
    return failure({ErrorCode::kBadValue, std::move(message), "", "", std::move(hint)});
  };
  if (points.size() < kFewest) {
    return bad(fmt::format("{} sizes do not make a line", points.size()), "measure 3 or more");
  }
  for (const TimedSize& point : points) {
    if (std::isfinite(point.time.value()) && point.time.value() > 0 &&
        std::isfinite(point.size.value()) && point.size.value() >= 0) {
      continue;
    }
    return bad(
        fmt::format("{} bytes in {} s is no measurement", point.size.value(), point.time.value()),
        "measure it again");
  }
  std::stable_sort(points.begin(), points.end(),
                   [](const TimedSize& a, const TimedSize& b) { return a.size < b.size; });
  if (points.front().size == points.back().size) {
    return bad(fmt::format("all points are of {} bytes", points.front().size.value()),
               "measure different sizes");
  }
  AffineFit out;
  const Line line = fit_line(points, kNone);
  out.latency = Seconds(line.latency_s);
  out.seconds_per_byte = line.seconds_per_byte;
  out.form = errors_of(points, false);
  out.held_out = errors_of(points, true);
  for (std::size_t i = 1; i < points.size(); ++i) {
    if (points[i].size == points[i - 1].size) continue;
    out.largest_fall = std::max(out.largest_fall, 1 - points[i].time / points[i - 1].time);
  }
  return out;
}

}  // namespace stepcast
