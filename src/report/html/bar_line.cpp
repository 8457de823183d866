// SPDX-License-Identifier: Apache-2.0
#include "report/html/bar_line.h"

#include <algorithm>
#include <cmath>

namespace stepcast::html {

Html bar_line(const BarLine& line) {
  Html marks;
  for (const BarPart& part : line.parts) {
    if (part.length == 0) continue;
    const double left = std::min(part.start, part.start + part.length);
    Html title;
    if (!part.title.empty()) title = element("title", {}, part.title);
    marks += element("rect",
                     {{"class", part.css_class},
                      {"x", percent_of_width(left)},
                      {"y", "2"},
                      {"width", percent_of_width(std::abs(part.length))},
                      {"height", "12"}},
                     title);
  }
  const auto upright = [&](const char* css_class, double share) {
    const std::string x = percent_of_width(share);
    marks +=
        element("line", {{"class", css_class}, {"x1", x}, {"x2", x}, {"y1", "0"}, {"y2", "16"}});
  };
  if (line.axis) upright("axis", *line.axis);
  if (line.limit) upright("limit", *line.limit);
  return element("svg", {{"class", "line"}, {"role", "img"}, {"aria-label", line.label}}, marks);
}

}  // namespace stepcast::html
