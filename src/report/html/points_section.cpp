// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/breakdown.h"
#include "report/difference.h"
#include "report/figure_columns.h"
#include "report/html/bar_line.h"
#include "report/html/compare_sections.h"
#include "report/html/data_table.h"
#include "report/html/legend.h"
#include "report/number_text.h"

namespace stepcast::html {
namespace {

constexpr std::size_t kMostBeside = 8;                   // points beside each other
constexpr std::size_t kFilterFrom = 20, kTallFrom = 40;  // rows

// Knows which parts any of the forecasts has, and gives the parts of one forecast.
class MeanParts {
 public:
  explicit MeanParts(const CompareReport& report) {
    for (const ComparedPoint& point : report.points) {
      if (!point.prediction) continue;
      const std::vector<TimePart> parts = of(*point.prediction);
      used_.resize(parts.size(), false);
      for (std::size_t i = 0; i < parts.size(); ++i) {
        used_[i] = used_[i] || parts[i].time.value() > 0;
      }
    }
  }
  bool used(std::size_t index) const { return used_[index]; }

  static std::vector<TimePart> of(const Prediction& prediction) {
    std::vector<TimePart> out = parts_of(mean_time(prediction));
    for (TimePart& part : out) part.label = label_of_mean(part);
    return out;
  }

  Html legend() const {
    std::vector<LegendEntry> entries;
    const std::vector<TimePart> parts = parts_of(TimeParts{});
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (!used_[i]) continue;
      entries.push_back({time_class_of(parts[i].key), label_of_mean(parts[i])});
    }
    return html::legend(entries);
  }

 private:
  std::vector<bool> used_;
};

Html stacked(const Prediction& prediction, Seconds widest) {
  BarLine line;
  line.label = time_text(prediction.step_time);
  double start = 0;
  for (const TimePart& part : MeanParts::of(prediction)) {
    const double length = part.time / widest;
    line.parts.push_back({start, length, time_class_of(part.key),
                          fmt::format("{}: {} ({})", part.label, time_text(part.time),
                                      percent_text(part.time / prediction.step_time))});
    start += length;
  }
  return bar_line(line);
}

Seconds slowest(const CompareReport& report) {
  Seconds out;
  for (const ComparedPoint& point : report.points) {
    if (point.prediction) out = std::max(out, point.prediction->step_time);
  }
  return out;
}

std::vector<DataColumn> columns_of(const CompareReport& report) {
  std::vector<DataColumn> out{{"place", true}};
  for (const std::string& key : report.keys) out.push_back({key});
  out.push_back({"", false, false});
  // A curve's whiskers show the intervals too.
  std::vector<const char*> figures = figure_titles(kGrid);
  if (report.scaling != Scaling::kNone) {
    figures.insert(figures.begin() + 1, {"GPUs", "speed-up", "efficiency"});
  } else {
    figures.insert(figures.begin() + 1, {"low", "high"});
  }
  for (const char* title : figures) out.push_back({title, true});
  out.push_back({"memory"});
  return out;
}

void add_figures(const CompareReport& report, const ComparedPoint& point,
                 std::vector<DataCell>& cells) {
  const Prediction& p = *point.prediction;
  const auto add_time = [&](Seconds time) { cells.emplace_back(time_text(time), time.value()); };
  const std::vector<FigureCell> figures = figure_cells(kGrid, p);
  cells.emplace_back(figures.front().text(), figures.front().value);
  if (report.scaling != Scaling::kNone) {
    const ScalingFigures scaled = scaling_of(report, point);
    const auto gpus = static_cast<double>(point.scenario->whole_cluster().gpus());
    cells.emplace_back(fmt::format("{:.0f}", gpus), gpus);
    cells.emplace_back(fmt::format("{:.2f}", scaled.speed_up), scaled.speed_up);
    cells.emplace_back(percent_text(scaled.efficiency), scaled.efficiency);
  } else {
    add_time(p.step_time_low);
    add_time(p.step_time_high);
  }
  for (std::size_t i = 1; i < figures.size(); ++i) {
    cells.emplace_back(figures[i].text(), figures[i].value);
  }
  cells.emplace_back(name_of(verdict_of(p)));
}

Html grid(const CompareReport& report) {
  // When the number of GPUs varies, shares say more than times, which shrink with the work of each
  // GPU.
  const bool scaling = report.scaling != Scaling::kNone;
  DataTable table("points",
                  fmt::format("Every point with a forecast; bars are the {} of the mean rank",
                              scaling ? "shares of the step" : "step"),
                  columns_of(report));
  const std::vector<std::size_t> place = places(report);
  const Seconds widest = slowest(report);
  for (const std::size_t i : reading_order(report)) {
    const ComparedPoint& point = report.points[i];
    if (!point.prediction) continue;
    std::vector<DataCell> cells{{fmt::format("{}", place[i]), static_cast<double>(place[i])}};
    for (const std::string& value : point.values) cells.emplace_back(value);
    cells.emplace_back(stacked(*point.prediction, scaling ? point.prediction->step_time : widest));
    add_figures(report, point, cells);
    table.add_row(cells, place[i] == 1 ? "total" : "");
  }
  return table.html({place.size() > kFilterFrom, true, place.size() > kTallFrom});
}

Html refused(const CompareReport& report) {
  std::vector<DataColumn> columns;
  for (const std::string& key : report.keys) columns.push_back({key});
  columns.push_back({"rule", false, true, true});
  DataTable table("refused", "Points that a rule refuses", columns);
  for (const ComparedPoint& point : report.points) {
    if (point.prediction) continue;
    std::vector<DataCell> cells(point.values.begin(), point.values.end());
    cells.emplace_back(refusal_text(point));
    table.add_row(cells);
  }
  if (table.empty()) return {};
  return element("h3", {}, "Refused") + table.html({false, true, report.points.size() > kTallFrom});
}

// A column per point, the fastest first.
Html columns(const CompareReport& report, const MeanParts& used) {
  std::vector<const ComparedPoint*> points;
  std::vector<DataColumn> titles{{"where"}};
  for (const std::size_t index : ranked(report)) {
    if (points.size() == kMostBeside) break;
    points.push_back(&report.points[index]);
    titles.push_back({point_text(report, *points.back()), true});
  }
  DataTable table("mean-parts",
                  fmt::format("Where the time of the mean rank goes{}",
                              points.size() < ranked(report).size() ? ", of the first places" : ""),
                  titles);
  const std::vector<TimePart> names = MeanParts::of(*points.front()->prediction);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!used.used(i)) continue;
    std::vector<DataCell> cells{names[i].label};
    for (const ComparedPoint* point : points) {
      const Seconds time = MeanParts::of(*point->prediction)[i].time;
      cells.emplace_back(time_text(time), time.value());
    }
    table.add_row(cells);
  }
  return table.html();
}

// Draws to the right what is slower than in the first place, to the left what is faster.
Html apart(const std::vector<double>& shares, const std::vector<TimePart>& parts, double widest) {
  BarLine line;
  line.axis = 0.5;
  double right = 0.5, left = 0.5, sum = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double length = shares[i] / widest * 0.5;
    double& at = length > 0 ? right : left;
    line.parts.push_back({at, length, time_class_of(parts[i].key),
                          fmt::format("{} {}", parts[i].label, signed_percent_text(shares[i]))});
    at += length;
    sum += shares[i];
  }
  line.label = signed_percent_text(sum);
  return bar_line(line);
}

struct Difference {
  const ComparedPoint* point;
  std::vector<double> shares;  // by part, of the first place's step
};

// Their bars share one scale; it is the longest side of any.
double widest_side(const std::vector<Difference>& all) {
  double widest = 1e-9;
  for (const Difference& one : all) {
    double more = 0, less = 0;
    for (const double share : one.shares) (share > 0 ? more : less) += std::abs(share);
    widest = std::max({widest, more, less});
  }
  return widest;
}

std::vector<Difference> differences_of(const CompareReport& report) {
  const std::vector<std::size_t> order = ranked(report);
  const Prediction& best = *report.points[order.front()].prediction;
  const std::vector<TimePart> of_best = MeanParts::of(best);
  std::vector<Difference> out;
  for (std::size_t k = 1; k < order.size(); ++k) {
    Difference one{&report.points[order[k]], {}};
    const std::vector<TimePart> parts = MeanParts::of(*one.point->prediction);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      one.shares.push_back((parts[i].time - of_best[i].time) / best.step_time);
    }
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

std::string change_text(double share) {
  return std::abs(share) < 5e-5 ? "0 %" : signed_percent_text(share, 2);
}

Section points_section(const CompareReport& report) {
  const MeanParts used(report);
  return {"points-section", "Side by side",
          used.legend() + grid(report) + element("h3", {}, "Parts of the step") +
              columns(report, used) + refused(report)};
}

Section differences_section(const CompareReport& report) {
  const MeanParts used(report);
  const Prediction& best = *report.points[ranked(report).front()].prediction;
  const std::vector<TimePart> names = MeanParts::of(best);
  const std::vector<Difference> all = differences_of(report);
  DataTable table(
      "differences", "Against the first place, as shares of its step",
      {{"point"}, {"", false, false}, {"step", true}, {"because of", false, true, true}});
  std::vector<DataColumn> titles{{"point"}, {"step", true}};
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (used.used(i)) titles.push_back({names[i].label, true});
  }
  DataTable parts("difference-parts", "The same by part of the mean rank's step", titles);
  const double widest = widest_side(all);
  for (const Difference& one : all) {
    const double whole = one.point->prediction->step_time / best.step_time - 1;
    const std::string name = point_text(report, *one.point);
    table.add_row({name + (one.point->prediction->fits ? "" : " (does not fit)"),
                   DataCell(apart(one.shares, names, widest)),
                   {change_text(whole), whole},
                   difference_text(*one.point->scenario, *one.point->prediction, best)});
    std::vector<DataCell> cells{name, {change_text(whole), whole}};
    for (std::size_t i = 0; i < one.shares.size(); ++i) {
      if (used.used(i)) cells.emplace_back(change_text(one.shares[i]), one.shares[i]);
    }
    parts.add_row(cells);
  }
  const DataTable::Controls controls{all.size() > kFilterFrom, true, all.size() > kTallFrom};
  return {"differences-section", "Where the differences come from",
          used.legend() + table.html(controls) +
              note(fmt::format("To the right of the line what takes longer than in the first place "
                               "({}), to the left what takes less.",
                               point_text(report, report.points[ranked(report).front()]))) +
              folded("By part", parts.html(controls))};
}

}  // namespace stepcast::html
