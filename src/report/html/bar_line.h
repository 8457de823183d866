// SPDX-License-Identifier: Apache-2.0
// A line of bars as wide as its table cell: stacked parts, or one that floats in a waterfall.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/html/markup.h"

namespace stepcast::html {

// Shares of the width; a negative length reaches to the left of `start`.
struct BarPart {
  double start = 0;
  double length = 0;
  std::string css_class;
  std::string title;  // what a pointer that rests on it shows
};

struct BarLine {
  std::vector<BarPart> parts;
  std::optional<double> limit = {};  // a dashed line
  std::string label;                 // says to a screen reader what the bars show
  std::optional<double> axis = {};   // a line that bars start from, to either side
};

Html bar_line(const BarLine& line);

}  // namespace stepcast::html
