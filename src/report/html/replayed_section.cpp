// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/pareto_front.h"
#include "layout/scenario.h"
#include "plan/layout_dimension.h"
#include "plan/planner.h"
#include "plan/space.h"
#include "report/figure_columns.h"
#include "report/html/data_table.h"
#include "report/html/plan_sections.h"
#include "report/html/scatter.h"
#include "report/html/time_axis.h"
#include "report/html/views.h"
#include "report/number_text.h"

namespace stepcast::html {
namespace {

constexpr std::size_t kMostPoints = 1000;  // beside those on the front

struct ReplayedPoint {
  const FoundLayout* found;
  std::size_t place = 0;  // 0: beyond the table of places
  bool on_front = false;
  std::string layout;
};

double gib(ByteCount bytes) { return static_cast<double>(bytes) / (1 << 30); }

// The fastest, and whatever is on the front of time and memory.
std::vector<ReplayedPoint> points_of(const PlanReport& report) {
  const std::vector<FoundLayout>& found = report.result.found;
  std::vector<std::vector<double>> figures;
  for (const FoundLayout& one : found) {
    figures.push_back(
        {static_cast<double>(one.prediction.peak_device), one.prediction.step_time.value()});
  }
  std::vector<ReplayedPoint> all;
  for (const FoundLayout& one : found) all.push_back({&one, 0, false, ""});
  for (const std::size_t index : pareto_front(figures)) all[index].on_front = true;
  std::size_t place = 0;
  for (const PlanRow& row : plan_rows(report)) {
    all[static_cast<std::size_t>(row.found - found.data())].place = ++place;
  }
  std::vector<ReplayedPoint> out;
  Scenario scenario = report.planner.space().base();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i >= kMostPoints && !all[i].on_front) continue;
    report.planner.space().put(all[i].found->choice, scenario);
    all[i].layout = choice_text(scenario);
    out.push_back(std::move(all[i]));
  }
  return out;
}

std::string title_of(const ReplayedPoint& point) {
  const Prediction& p = point.found->prediction;
  return fmt::format("{}{} ({} to {}), {} GiB, MFU {}: {}",
                     point.place > 0 ? fmt::format("place {}: ", point.place) : "",
                     time_text(p.step_time), time_text(p.step_time_low),
                     time_text(p.step_time_high), gib_text(p.peak_device), mfu_text(p),
                     point.layout);
}

ScatterSeries::Point drawn(const ReplayedPoint& point) {
  const Prediction& p = point.found->prediction;
  ScatterSeries::Point out{gib(p.peak_device), p.step_time.value(), title_of(point)};
  if (point.place == 1) out.tag = "first place";
  return out;
}

// Indices into the points, by value of one dimension.
using Groups = std::map<std::int32_t, std::vector<std::size_t>>;

Groups groups_of(const std::vector<ReplayedPoint>& points, std::size_t level) {
  Groups out;
  for (std::size_t i = 0; i < points.size(); ++i) {
    out[points[i].found->choice.values[level]].push_back(i);
  }
  return out;
}

// The share of the variance of log(step time) that lies between the groups, adjusted for their
// number (adjusted R squared of a one-way layout).
double told_apart(const std::vector<ReplayedPoint>& points, const Groups& groups) {
  const auto value = [&](std::size_t i) {
    return std::log(points[i].found->prediction.step_time.value());
  };
  const auto spread = [&](const std::vector<std::size_t>& members) {
    double sum = 0, squares = 0;
    for (const std::size_t i : members) sum += value(i);
    const double mean = sum / static_cast<double>(members.size());
    for (const std::size_t i : members) squares += (value(i) - mean) * (value(i) - mean);
    return squares;
  };
  std::vector<std::size_t> everyone;
  double within = 0;
  for (const auto& [key, members] : groups) {
    within += spread(members);
    everyone.insert(everyone.end(), members.begin(), members.end());
  }
  const double whole = spread(everyone);
  const auto n = static_cast<double>(points.size()), k = static_cast<double>(groups.size());
  if (whole <= 0 || n <= k) return 0;
  return 1 - within / whole * (n - 1) / (n - k);
}

std::string short_path(const LayoutDimension& dimension) {
  return std::string(dimension.path).substr(std::string("layout.").size());
}

struct Coloring {
  const LayoutDimension* dimension;
  Groups groups;
  double told_apart;
};

// The dimensions that tell the step times apart most.
std::vector<Coloring> colorings_of(const PlanReport& report,
                                   const std::vector<ReplayedPoint>& points) {
  const auto& dimensions = report.planner.space().dimensions();
  std::vector<Coloring> out;
  for (std::size_t level = 0; level < dimensions.size(); ++level) {
    Groups groups = groups_of(points, level);
    if (groups.size() < 2 || groups.size() > kMostSeries) continue;
    const double share = told_apart(points, groups);
    out.push_back({dimensions[level], std::move(groups), share});
  }
  std::stable_sort(out.begin(), out.end(), [](const Coloring& a, const Coloring& b) {
    return a.told_apart > b.told_apart;
  });
  if (out.size() > kMostViews) out.resize(kMostViews);
  return out;
}

Scatter frame(const PlanReport& report, const std::vector<ReplayedPoint>& points) {
  Scatter out;
  out.label = fmt::format("Step time against device memory of {} layouts", points.size());
  out.x = {"peak device memory, GiB", ValueAxis::Scale::kLinear,
           [](double tick) { return fmt::format("{:.4g}", tick); }};
  out.y = {"step time", ValueAxis::Scale::kLogarithmic, tick_text};
  out.limit = gib(report.result.memory_limit);
  out.limit_label = fmt::format("limit, {} GiB", gib_text(report.result.memory_limit));
  out.front.label = "Pareto front: none needs less memory and less time";
  for (const ReplayedPoint& point : points) {
    if (point.on_front) out.front.points.push_back(drawn(point));
  }
  std::sort(out.front.points.begin(), out.front.points.end(),
            [](const auto& a, const auto& b) { return a.x < b.x; });
  return out;
}

Html charts(const PlanReport& report, const std::vector<ReplayedPoint>& points) {
  std::vector<View> all;
  for (const Coloring& coloring : colorings_of(report, points)) {
    Scatter scatter = frame(report, points);
    const std::string name = short_path(*coloring.dimension);
    for (const auto& [value, members] : coloring.groups) {
      ScatterSeries series;
      series.label = fmt::format("{} {}", name, coloring.dimension->text(value));
      for (const std::size_t i : members) series.points.push_back(drawn(points[i]));
      scatter.series.push_back(std::move(series));
    }
    all.push_back({name, scatter_chart(scatter)});
  }
  if (all.empty()) {
    Scatter scatter = frame(report, points);
    scatter.series.emplace_back();
    for (const ReplayedPoint& point : points) scatter.series[0].points.push_back(drawn(point));
    all.push_back({"", scatter_chart(scatter)});
  }
  return views("replayed-views", "Colours and shapes by", all);
}

Html table_of(const PlanReport& report, const std::vector<ReplayedPoint>& points) {
  const auto& dimensions = report.planner.space().dimensions();
  std::vector<DataColumn> columns{{"place", true}, {"step", true}, {"GiB", true}, {"front"}};
  for (const LayoutDimension* dimension : dimensions) columns.push_back({short_path(*dimension)});
  DataTable table("replayed", "Replayed layouts that fit, by the keys that were open", columns);
  for (const ReplayedPoint& point : points) {
    const Prediction& p = point.found->prediction;
    std::vector<DataCell> cells{
        point.place > 0 ? DataCell(fmt::format("{}", point.place), static_cast<double>(point.place))
                        : DataCell(""),
        {time_text(p.step_time), p.step_time.value()},
        {gib_text(p.peak_device), static_cast<double>(p.peak_device)},
        point.on_front ? "front" : ""};
    for (std::size_t level = 0; level < dimensions.size(); ++level) {
      cells.emplace_back(dimensions[level]->text(point.found->choice.values[level]));
    }
    table.add_row(cells);
  }
  return table.html({true, true, true});
}

}  // namespace

Section replayed_section(const PlanReport& report) {
  const std::vector<ReplayedPoint> points = points_of(report);
  Html body = charts(report, points);
  if (points.size() < report.result.found.size()) {
    body += note(fmt::format("The {} slowest layouts off the front are left out.",
                             report.result.found.size() - points.size()));
  }
  body += note(
      "Every point is a layout that the engine replayed and that fits. A search for the fastest "
      "replays few slow ones: for layouts that need less memory, --front.");
  body += folded("The same as a table", table_of(report, points));
  return {"replayed-section", "Time against memory", body};
}

}  // namespace stepcast::html
