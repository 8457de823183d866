// SPDX-License-Identifier: Apache-2.0
// How well a fit predicts what it has not seen.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace stepcast {

// Returns the error of each point under a fit without it: `errors_of(others, left_out)` for each
// part of the points. Few points are left out one by one; more go in 64 parts, because a fit for
// each of many would take a time that grows with their square, and tell no more.
template <class Point, class ErrorsOf>
std::vector<double> left_out_errors(const std::vector<Point>& points, const ErrorsOf& errors_of) {
  constexpr std::size_t kMostParts = 64;
  const std::size_t parts = std::min(points.size(), kMostParts);
  std::vector<double> out;
  for (std::size_t part = 0; part < parts; ++part) {
    std::vector<Point> others, left_out;
    for (std::size_t i = 0; i < points.size(); ++i) {
      (i % parts == part ? left_out : others).push_back(points[i]);
    }
    const std::vector<double> of_part = errors_of(others, left_out);
    out.insert(out.end(), of_part.begin(), of_part.end());
  }
  return out;
}

}  // namespace stepcast
