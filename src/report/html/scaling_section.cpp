// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "report/html/compare_sections.h"
#include "report/html/scatter.h"
#include "report/html/views.h"
#include "report/number_text.h"

namespace stepcast::html {
namespace {

double gpus(const ComparedPoint& point) {
  return static_cast<double>(point.scenario->whole_cluster().gpus());
}

// The number of GPUs runs along the axis; every combination of the other keys is a curve.
std::string curve_of(const CompareReport& report, const ComparedPoint& point) {
  std::string out;
  for (std::size_t k = 0; k < report.keys.size(); ++k) {
    const std::string& key = report.keys[k];
    if (key == "cluster.nodes" || key == "cluster.gpus") continue;
    out += fmt::format("{}{} {}", out.empty() ? "" : " · ", key.substr(key.rfind('.') + 1),
                       point.values[k]);
  }
  return out;
}

struct Curve {
  std::string label;
  std::vector<const ComparedPoint*> points;  // in order of the GPUs
};

std::vector<Curve> curves_of(const CompareReport& report) {
  std::vector<Curve> out;
  for (const ComparedPoint& point : report.points) {
    if (!point.prediction) continue;
    const std::string label = curve_of(report, point);
    auto at = std::find_if(out.begin(), out.end(),
                           [&](const Curve& curve) { return curve.label == label; });
    if (at == out.end()) at = out.insert(out.end(), {label, {}});
    at->points.push_back(&point);
  }
  for (Curve& curve : out) {
    std::stable_sort(
        curve.points.begin(), curve.points.end(),
        [](const ComparedPoint* a, const ComparedPoint* b) { return gpus(*a) < gpus(*b); });
  }
  return out;
}

Html chart(const CompareReport& report, const std::vector<Curve>& curves, bool per_gpu) {
  const ComparedPoint& first =
      *std::find_if(report.points.begin(), report.points.end(),
                    [](const ComparedPoint& point) { return point.prediction.has_value(); });
  Scatter scatter;
  const char* unit = per_gpu ? "tokens/s per GPU" : "tokens/s";
  scatter.label = fmt::format("{} over GPUs", unit);
  const auto number = [](double tick) { return number_text(tick, 3); };
  scatter.x = {"GPUs", ValueAxis::Scale::kLogarithmic, count_text};
  scatter.y = {unit, per_gpu ? ValueAxis::Scale::kLinear : ValueAxis::Scale::kLogarithmic, number};
  scatter.ideal.label = fmt::format("ideal: each GPU as fast as on the first {:.0f}", gpus(first));
  std::set<double> counts;
  for (std::size_t c = 0; c < std::min(curves.size(), kMostSeries); ++c) {
    ScatterSeries series{curves[c].label, {}, true};
    for (const ComparedPoint* point : curves[c].points) {
      const Prediction& p = *point->prediction;
      const double rate = per_gpu ? p.tokens_per_s_per_gpu : p.tokens_per_s;
      counts.insert(gpus(*point));
      series.points.push_back({gpus(*point), rate,
                               fmt::format("{}: {} {} ({} to {}), efficiency {}{}",
                                           point_text(report, *point), number_text(rate), unit,
                                           number_text(rate * (p.step_time / p.step_time_high)),
                                           number_text(rate * (p.step_time / p.step_time_low)),
                                           percent_text(scaling_of(report, *point).efficiency),
                                           p.fits ? "" : ", does not fit"),
                               rate * (p.step_time / p.step_time_high),
                               rate * (p.step_time / p.step_time_low), "", !p.fits});
    }
    scatter.series.push_back(std::move(series));
  }
  scatter.x.ticks.assign(counts.begin(), counts.end());
  for (const double count : counts) {
    const double ideal = first.prediction->tokens_per_s_per_gpu * (per_gpu ? 1 : count);
    scatter.ideal.points.push_back({count, ideal, ""});
  }
  return scatter_chart(scatter);
}

}  // namespace

Section scaling_section(const CompareReport& report) {
  const std::vector<Curve> curves = curves_of(report);
  Html body = views("scaling-views", "Show",
                    {{"tokens/s per GPU", chart(report, curves, true)},
                     {"tokens/s", chart(report, curves, false)}});
  const bool weak = report.scaling == Scaling::kWeak;
  body += note(weak ? "Weak scaling: the batch grows with the GPUs. Whiskers are the intervals of "
                      "the forecasts."
                    : "Strong scaling: the batch stays the same. Whiskers are the intervals of the "
                      "forecasts.");
  const bool large = std::any_of(
      report.points.begin(), report.points.end(),
      [](const ComparedPoint& point) { return point.prediction && !point.prediction->fits; });
  if (large) body += note("Hollow points do not fit in memory.");
  if (curves.size() > kMostSeries) {
    body += note(fmt::format("The first {} of {} curves.", kMostSeries, curves.size()));
  }
  return {"scaling", weak ? "Weak scaling" : "Strong scaling", body};
}

}  // namespace stepcast::html
