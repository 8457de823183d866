// SPDX-License-Identifier: Apache-2.0
// Points in a plane: predicted against measured, time against memory with its Pareto front.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "report/html/markup.h"
#include "report/html/value_axis.h"

namespace stepcast::html {

struct ScatterSeries {
  std::string label;
  struct Point {
    double x = 0, y = 0;
    std::string title;  // what a pointer that rests on it shows
  };
  std::vector<Point> points;
};

struct ScatterAxis {
  std::string title;
  ValueAxis::Scale scale = ValueAxis::Scale::kLinear;
  std::function<std::string(double)> text;  // of a tick
};

struct Scatter {
  std::string label;  // says to a screen reader what is shown
  ScatterAxis x, y;
  std::vector<ScatterSeries> series;  // each with a colour and a shape of its own, up to ten
  std::vector<ScatterSeries::Point> front = {};  // joined by steps, in order of x
  // y = x, both axes over the same values, and the band between y = (1 - band) x and (1 + band) x.
  bool diagonal = false;
  double band = 0;
};

Html scatter_chart(const Scatter& scatter);

}  // namespace stepcast::html
