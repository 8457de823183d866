// SPDX-License-Identifier: Apache-2.0
#include "report/html/scatter.h"

#include <fmt/format.h>

#include <algorithm>

namespace stepcast::html {
namespace {

constexpr double kWidth = 900, kHeight = 470;
constexpr double kLeft = 92, kRight = 14, kTop = 12, kBottom = 46;
constexpr std::size_t kColors = 5;
constexpr double kRadius = 4.2;

std::string color_of(std::size_t series) { return fmt::format("mark-{}", series % kColors + 1); }

// Shapes tell series apart where colours do not: circle, square, triangle, diamond, cross.
std::string shape(std::size_t series, double x, double y) {
  const double r = kRadius;
  const auto at = [](double value) { return coordinate(value); };
  switch ((series + series / kColors) % kColors) {
    case 0:
      return fmt::format("M{} {}a{} {} 0 1 0 {} 0a{} {} 0 1 0 {} 0z", at(x - r), at(y), r, r, 2 * r,
                         r, r, -2 * r);
    case 1:
      return fmt::format("M{} {}h{}v{}h{}z", at(x - r * 0.9), at(y - r * 0.9), at(1.8 * r),
                         at(1.8 * r), at(-1.8 * r));
    case 2:
      return fmt::format("M{} {}l{} {}h{}z", at(x), at(y - r * 1.15), at(1.2 * r), at(2.1 * r),
                         at(-2.4 * r));
    case 3:
      return fmt::format("M{} {}l{} {}l{} {}l{} {}z", at(x), at(y - r * 1.3), at(1.2 * r),
                         at(1.3 * r), at(-1.2 * r), at(1.3 * r), at(-1.2 * r), at(-1.3 * r));
    default:
      return fmt::format("M{} {}h{}v{}h{}v{}h{}v{}h{}v{}h{}v{}h{}z", at(x - r * 0.35),
                         at(y - r * 1.1), at(0.7 * r), at(0.75 * r), at(0.75 * r), at(0.7 * r),
                         at(-0.75 * r), at(0.75 * r), at(-0.7 * r), at(-0.75 * r), at(-0.75 * r),
                         at(-0.7 * r), at(0.75 * r));
  }
}

class Drawing {
 public:
  explicit Drawing(const Scatter& scatter)
      : scatter_(scatter),
        x_(scatter.x.scale, values(scatter, true)),
        y_(scatter.y.scale, values(scatter, false)) {}

  Html draw() const {
    Html out = band() + axes() + lines();
    for (std::size_t s = 0; s < scatter_.series.size(); ++s) out += series(s) + text("\n");
    return out + tags();
  }

 private:
  // On a chart with a diagonal both axes show the same.
  static std::vector<double> values(const Scatter& scatter, bool horizontal) {
    std::vector<double> out;
    const auto add = [&](const ScatterSeries::Point& point) {
      if (horizontal || scatter.diagonal) out.push_back(point.x);
      if (horizontal && !scatter.diagonal) return;
      for (const double y : {point.y, point.low.value_or(point.y), point.high.value_or(point.y)}) {
        out.push_back(y);
      }
    };
    for (const ScatterSeries& series : scatter.series) {
      std::for_each(series.points.begin(), series.points.end(), add);
    }
    std::for_each(scatter.ideal.points.begin(), scatter.ideal.points.end(), add);
    if (horizontal && scatter.limit) out.push_back(*scatter.limit);
    return out;
  }

  double x(double value) const { return kLeft + x_.place(value) * (kWidth - kLeft - kRight); }
  double y(double value) const {
    return kHeight - kBottom - y_.place(value) * (kHeight - kTop - kBottom);
  }
  static Html line(const std::string& css, double x1, double y1, double x2, double y2) {
    return element("line", {{"class", css},
                            {"x1", coordinate(x1)},
                            {"y1", coordinate(y1)},
                            {"x2", coordinate(x2)},
                            {"y2", coordinate(y2)}});
  }
  static Html label(const char* css, double x, double y, const std::string& shown) {
    return element("text", {{"class", css}, {"x", coordinate(x)}, {"y", coordinate(y)}}, shown);
  }

  Html axes() const {
    const double bottom = kHeight - kBottom;
    Html out;
    for (const double tick : scatter_.x.ticks.empty() ? x_.ticks() : scatter_.x.ticks) {
      out += line("grid", x(tick), kTop, x(tick), bottom);
      out += label("soft middle", x(tick), bottom + 16, scatter_.x.text(tick));
    }
    for (const double tick : scatter_.y.ticks.empty() ? y_.ticks() : scatter_.y.ticks) {
      out += line("grid", kLeft, y(tick), kWidth - kRight, y(tick));
      out += label("soft end", kLeft - 6, y(tick) + 4, scatter_.y.text(tick));
    }
    out += line("axis", kLeft, bottom, kWidth - kRight, bottom);
    out += line("axis", kLeft, kTop, kLeft, bottom);
    out += label("middle", (kLeft + kWidth - kRight) / 2, kHeight - 8, scatter_.x.title);
    out += element("text",
                   {{"class", "middle"},
                    {"transform",
                     fmt::format("translate(14 {}) rotate(-90)", coordinate((kTop + bottom) / 2))}},
                   scatter_.y.title);
    return out;
  }

  Html band() const {
    if (!scatter_.diagonal) return {};
    const std::vector<double> shown = values(scatter_, true);
    if (shown.empty()) return {};
    const auto [low, high] = std::minmax_element(shown.begin(), shown.end());
    const auto corner = [&](double at, double factor) {
      return fmt::format("{} {}", coordinate(x(at)), coordinate(y(at * factor)));
    };
    const double up = 1 + scatter_.band, down = 1 - scatter_.band;
    return element("path", {{"class", "band"},
                            {"d", fmt::format("M{}L{}L{}L{}z", corner(*low, up), corner(*high, up),
                                              corner(*high, down), corner(*low, down))}}) +
           line("axis", x(*low), y(*low), x(*high), y(*high));
  }

  std::string place(const ScatterSeries::Point& point) const {
    return fmt::format("{} {}", coordinate(x(point.x)), coordinate(y(point.y)));
  }
  std::string straight(const std::vector<ScatterSeries::Point>& points) const {
    std::string path;
    for (const ScatterSeries::Point& point : points) {
      path += (path.empty() ? "M" : "L") + place(point);
    }
    return path;
  }

  Html lines() const {
    Html out;
    if (scatter_.limit) {
      out += line("limit", x(*scatter_.limit), kTop, x(*scatter_.limit), kHeight - kBottom);
    }
    if (!scatter_.ideal.points.empty()) {
      out += element("path", {{"class", "ideal"}, {"d", straight(scatter_.ideal.points)}});
    }
    std::string steps;
    for (const ScatterSeries::Point& point : scatter_.front.points) {
      steps += steps.empty()
                   ? "M" + place(point)
                   : fmt::format("H{}V{}", coordinate(x(point.x)), coordinate(y(point.y)));
    }
    if (!steps.empty()) out += element("path", {{"class", "front"}, {"d", steps}});
    return out;
  }

  Html series(std::size_t index) const {
    const ScatterSeries& own = scatter_.series[index];
    Html out;
    if (own.joined) {
      out += element("path", {{"class", "joined " + color_of(index)}, {"d", straight(own.points)}});
    }
    for (const ScatterSeries::Point& point : own.points) {
      if (point.low && point.high) {
        out += line("whisker " + color_of(index), x(point.x), y(*point.low), x(point.x),
                    y(*point.high));
      }
      out += element("path",
                     {{"class", (point.hollow ? "point hollow " : "point ") + color_of(index)},
                      {"d", shape(index, x(point.x), y(point.y))}},
                     element("title", {}, point.title));
    }
    return out;
  }

  // Above everything, on the side where there is room.
  Html tags() const {
    Html out;
    for (const ScatterSeries& own : scatter_.series) {
      for (const ScatterSeries::Point& point : own.points) {
        if (point.tag.empty()) continue;
        const bool left = x(point.x) > 0.75 * kWidth;
        out += label(left ? "tag end" : "tag", x(point.x) + (left ? -8 : 8), y(point.y) + 4,
                     point.tag);
      }
    }
    return out;
  }

  const Scatter& scatter_;
  ValueAxis x_, y_;
};

Html entry(const Html& mark, const std::string& label) {
  return element(
      "li", {},
      element("svg", {{"viewBox", "0 0 14 14"}, {"aria-hidden", "true"}}, mark) + text(label));
}

Html legend_of(const Scatter& scatter) {
  Html items;
  for (std::size_t s = 0; s < scatter.series.size() && scatter.series.size() > 1; ++s) {
    items += entry(element("path", {{"class", color_of(s)}, {"d", shape(s, 7, 7)}}),
                   scatter.series[s].label);
  }
  if (!scatter.front.points.empty()) {
    items +=
        entry(element("path", {{"class", "front"}, {"d", "M1 1V7H13V13"}}), scatter.front.label);
  }
  if (!scatter.ideal.points.empty()) {
    items += entry(element("path", {{"class", "ideal"}, {"d", "M1 13L13 1"}}), scatter.ideal.label);
  }
  if (scatter.limit) {
    items += entry(element("path", {{"class", "limit"}, {"d", "M7 0V14"}}), scatter.limit_label);
  }
  return items.empty() ? items : element("ul", {{"class", "legend"}}, items);
}

}  // namespace

Html scatter_chart(const Scatter& scatter) {
  const Html drawing = element("svg",
                               {{"class", "chart"},
                                {"viewBox", fmt::format("0 0 {} {}", kWidth, kHeight)},
                                {"role", "img"},
                                {"aria-label", scatter.label}},
                               Drawing(scatter).draw());
  const Html said = element("figcaption", {{"class", "said needs-script"}, {"role", "status"}},
                            "Arrow keys go from point to point.");
  return element("figure", {{"class", "points"}},
                 legend_of(scatter) +
                     element("div",
                             {{"class", "scroll"},
                              {"tabindex", "0"},
                              {"role", "region"},
                              {"aria-label", scatter.label}},
                             drawing) +
                     said);
}

}  // namespace stepcast::html
