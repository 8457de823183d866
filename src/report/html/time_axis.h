// SPDX-License-Identifier: Apache-2.0
// Turns seconds into a share of the width of a picture, with a piece in the middle cut out where
// everything would be too much to draw.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/html/markup.h"

namespace stepcast::html {

class TimeAxis {
 public:
  struct Cut {
    double begin = 0, end = 0;  // seconds that are left out
  };

  explicit TimeAxis(double length, std::optional<Cut> cut = std::nullopt);

  double share(double seconds) const;          // clamped to the axis
  bool shows(double start, double end) const;  // some of it
  const std::optional<Cut>& cut() const { return cut_; }

  // Lines over `height` and times below them.
  Html ticks(double height) const;

 private:
  double length_;
  std::optional<Cut> cut_;
};

// "500 ms", "2 s": of a tick, whose digits are few.
std::string tick_text(double seconds);

// About `count` round numbers between `begin` and `end`.
std::vector<double> round_ticks(double begin, double end, int count);

}  // namespace stepcast::html
