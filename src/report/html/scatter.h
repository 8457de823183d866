// SPDX-License-Identifier: Apache-2.0
// Points in a plane: predicted against measured, time against memory with its Pareto front, a curve
// over the number of GPUs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "report/html/markup.h"
#include "report/html/value_axis.h"

namespace stepcast::html {

struct ScatterSeries {
  std::string label;
  struct Point {
    double x = 0, y = 0;
    std::string title;  // what a pointer that rests on it shows, and the keys that step to it
    std::optional<double> low = {}, high = {};  // the interval of y, as a whisker
    std::string tag = {};                       // a word or two beside it
    bool hollow = false;                        // an outline
  };
  std::vector<Point> points;
  bool joined = false;  // by lines, in order of the points
};

struct ScatterAxis {
  std::string title;
  ValueAxis::Scale scale = ValueAxis::Scale::kLinear;
  std::function<std::string(double)> text;  // of a tick
  std::vector<double> ticks = {};           // instead of round numbers
};

// A line that is no data; its label is in the legend.
struct ScatterLine {
  std::string label;
  std::vector<ScatterSeries::Point> points;
};

struct Scatter {
  std::string label;  // says to a screen reader what is shown
  ScatterAxis x, y;
  std::vector<ScatterSeries> series;  // each with a colour and a shape of its own, up to ten
  ScatterLine front = {};             // joined by steps, in order of x
  ScatterLine ideal = {};             // dashed
  std::optional<double> limit = {};   // of x, a dashed line
  std::string limit_label = {};
  // y = x, both axes over the same values, and the band between y = (1 - band) x and (1 + band) x.
  bool diagonal = false;
  double band = 0;
};

constexpr std::size_t kMostSeries = 10;  // that colour and shape tell apart

Html scatter_chart(const Scatter& scatter);

}  // namespace stepcast::html
