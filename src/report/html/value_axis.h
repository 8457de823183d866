// SPDX-License-Identifier: Apache-2.0
// Turns values into places along a chart's axis, linear or logarithmic.
#pragma once

#include <string>
#include <vector>

namespace stepcast::html {

class ValueAxis {
 public:
  enum class Scale { kLinear, kLogarithmic };

  // Takes the values that are to be shown, which are positive on a logarithmic axis; it leaves some
  // room beyond the outermost. A linear axis begins at zero when all values are on one side of it
  // and some are near it.
  ValueAxis(Scale scale, const std::vector<double>& values);

  double place(double value) const;  // 0 to 1 inside the axis
  std::vector<double> ticks() const;

 private:
  Scale scale_;
  double begin_ = 0, end_ = 1;  // of values, or of their decimal logarithms
};

}  // namespace stepcast::html
