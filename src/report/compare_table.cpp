// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/breakdown.h"
#include "report/compare_report.h"
#include "report/difference.h"
#include "report/document_form.h"
#include "report/figure_columns.h"
#include "report/number_text.h"
#include "report/pipeline_strip.h"
#include "report/text_table.h"

namespace stepcast {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

double gpus(const ComparedPoint& point) {
  return static_cast<double>(point.scenario->whole_cluster().gpus());
}

TextTable grid(const CompareReport& report) {
  std::vector<Column> columns = {{"place"}};
  for (const std::string& key : report.keys) columns.push_back({key});
  for (const char* title : figure_titles(kGrid)) columns.push_back({title});
  if (!report.what_if.empty()) columns.push_back({"without " + joined(report.what_if)});
  const bool scales = report.scaling != Scaling::kNone;
  if (scales) {
    columns.push_back({"GPUs"});
    columns.push_back({"speed-up"});
    columns.push_back({"efficiency"});
  }
  // Under scaling the figures beside it say how points differ.
  columns.push_back({scales ? "" : "against the first place", Align::kLeft});
  TextTable table(columns);
  const std::vector<std::size_t> place = places(report);
  const ComparedPoint& best = report.points[ranked(report).front()];
  for (const std::size_t i : reading_order(report)) {
    const ComparedPoint& point = report.points[i];
    std::vector<std::string> cells = {place[i] == 0 ? "-" : fmt::format("{}", place[i])};
    cells.insert(cells.end(), point.values.begin(), point.values.end());
    if (!point.prediction) {
      cells.resize(columns.size() - 1, "-");
      cells.push_back(refusal_text(point));
    } else {
      const Prediction& p = *point.prediction;
      for (const FigureCell& cell : figure_cells(kGrid, p)) cells.push_back(cell.text());
      if (!report.what_if.empty()) {
        cells.push_back(point.unchanged ? time_text(point.unchanged->step_time) : "-");
      }
      if (scales) {
        const auto [speed, efficiency] = scaling_of(report, point);
        cells.push_back(fmt::format("{:.0f}", gpus(point)));
        cells.push_back(fmt::format("{:.2f}", speed));
        cells.push_back(percent_text(efficiency));
      }
      std::string why = p.fits ? "" : "does not fit";
      if (&point != &best && !scales) {
        if (!why.empty()) why += "; ";
        why +=
            fmt::format("{}: {}", signed_percent_text(p.step_time / best.prediction->step_time - 1),
                        difference_text(*point.scenario, p, *best.prediction));
      }
      cells.push_back(why);
    }
    table.add_row(std::move(cells));
  }
  return table;
}

// Shows where the mean rank's time goes, one column per point.
// The points with a forecast that have room side by side, two at least.
std::vector<const ComparedPoint*> points_beside(const CompareReport& report) {
  constexpr std::size_t kWidest = 100, kWhere = 26, kTime = 8, kGap = 2;
  std::vector<const ComparedPoint*> out;
  std::size_t width = kWhere;
  for (const std::size_t index : reading_order(report)) {
    const ComparedPoint& point = report.points[index];
    if (!point.prediction) continue;
    width += std::max(point_text(report, point).size(), kTime) + kGap;
    if (out.size() >= 2 && width > kWidest) break;
    out.push_back(&point);
  }
  return out;
}

TextTable parts(const CompareReport& report) {
  std::vector<Column> columns = {{"where", Align::kLeft}};
  std::vector<const Prediction*> shown_points;
  for (const ComparedPoint* point : points_beside(report)) {
    columns.push_back({point_text(report, *point)});
    shown_points.push_back(&*point->prediction);
  }
  TextTable table(columns);
  std::vector<std::vector<TimePart>> all;
  for (const Prediction* prediction : shown_points) all.push_back(parts_of(mean_time(*prediction)));
  for (std::size_t i = 0; !all.empty() && i < all.front().size(); ++i) {
    std::vector<std::string> cells = {label_of_mean(all.front()[i])};
    bool any = false;
    for (const auto& list : all) {
      any = any || list[i].time.value() > 0;
      cells.push_back(time_text(list[i].time));
    }
    if (any) table.add_row(std::move(cells));
  }
  return table;
}

// The keys in which the files differ, one column per file.
TextTable differences(const CompareReport& report) {
  std::vector<Column> columns = {{"key", Align::kLeft}};
  for (const std::string& file : compared_files(report)) columns.push_back({file});
  TextTable table(columns);
  for (const KeyDifference& one : report.differences) {
    std::vector<std::string> cells = {one.key};
    cells.insert(cells.end(), one.values.begin(), one.values.end());
    table.add_row(std::move(cells));
  }
  return table;
}

TextTable tornado(const CompareReport& report, Seconds step) {
  TextTable table({{"resource", Align::kLeft},
                   {signed_percent_text(-report.change, 0)},
                   {signed_percent_text(report.change, 0)},
                   {"", Align::kLeft},
                   {"what", Align::kLeft}});
  double widest = 0;
  for (const Sensitivity& one : report.sensitivity) {
    widest = std::max(widest, std::abs((one.slower - one.faster) / step));
  }
  for (const Sensitivity& one : report.sensitivity) {
    const double width = std::abs((one.slower - one.faster) / step);
    table.add_row({one.resource, signed_percent_text(one.slower / step - 1, 2),
                   signed_percent_text(one.faster / step - 1, 2),
                   widest > 0 ? bar_text(0, width / widest, kBarWidth) : "", one.title});
  }
  return table;
}

Written written(const CompareReport& report, Form form) {
  const std::vector<std::size_t> order = ranked(report);
  const ComparedPoint& best = report.points[order.front()];
  Written out = form == Form::kMarkdown ? title("Comparison", form) : Written();
  out += line(compare_headline(report), form);
  if (compared_files(report).size() > 1) {
    out += heading("Keys that differ between the files", form);
    out +=
        report.differences.empty() ? line(kNoDifference, form) : shown(differences(report), form);
  }
  if (report.keys.empty()) {
    out += line(layout_text(*best.scenario), form);
  } else {
    out += heading("Forecasts", form) + shown(grid(report), form);
    out += heading("Where the time of the mean rank goes", form) + shown(parts(report), form);
    const std::size_t beside = points_beside(report).size();
    if (beside < order.size()) {
      out +=
          line(fmt::format("The first {} of {}; --format json has them all", beside, order.size()),
               form);
    }
  }
  if (const auto drawn = with_pipelines(report); report.pipelines && !drawn.empty()) {
    std::vector<NamedPipeline> pipelines;
    for (const std::size_t index : drawn) {
      const ComparedPoint& point = report.points[index];
      pipelines.push_back({point_text(report, point), &*point.prediction});
    }
    out += heading("The pipelines over one step", form) + pipeline_strips(pipelines, form);
  }
  if (!report.sensitivity.empty()) {
    out += heading(fmt::format("Step time of {} with one resource slower or faster",
                               time_text(best.prediction->step_time)),
                   form) +
           shown(tornado(report, best.prediction->step_time), form);
  }
  return out;
}

}  // namespace

std::vector<std::size_t> ranked(const CompareReport& report) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < report.points.size(); ++i) {
    if (report.points[i].prediction) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const Prediction& x = *report.points[a].prediction;
    const Prediction& y = *report.points[b].prediction;
    return x.fits != y.fits ? x.fits : x.step_time < y.step_time;
  });
  return order;
}

std::vector<std::size_t> places(const CompareReport& report) {
  std::vector<std::size_t> out(report.points.size(), 0);
  std::size_t place = 0;
  for (const std::size_t index : ranked(report)) out[index] = ++place;
  return out;
}

std::vector<std::size_t> reading_order(const CompareReport& report) {
  std::vector<std::size_t> order;
  if (report.scaling == Scaling::kNone) order = ranked(report);
  for (std::size_t i = 0; i < report.points.size(); ++i) {
    if (report.scaling != Scaling::kNone || !report.points[i].prediction) order.push_back(i);
  }
  return order;
}

std::vector<std::size_t> drawn_beside(const CompareReport& report) {
  std::vector<std::size_t> out;
  for (const std::size_t index : reading_order(report)) {
    const ComparedPoint& point = report.points[index];
    if (out.size() < 2 && point.prediction && point.scenario->layout.pp > 1) out.push_back(index);
  }
  return out;
}

std::vector<std::size_t> with_pipelines(const CompareReport& report) {
  std::vector<std::size_t> out;
  for (const std::size_t index : reading_order(report)) {
    const ComparedPoint& point = report.points[index];
    const bool has = point.prediction && !point.prediction->slices.empty();
    if (has && point.scenario->layout.pp > 1) out.push_back(index);
  }
  return out;
}

std::vector<std::string> compared_files(const CompareReport& report) {
  std::vector<std::string> out;
  if (report.keys.empty() || report.keys.front() != "file") return out;
  for (const ComparedPoint& point : report.points) {
    if (out.empty() || out.back() != point.values.front()) out.push_back(point.values.front());
  }
  return out;
}

std::string point_text(const CompareReport& report, const ComparedPoint& point) {
  std::string out;
  for (std::size_t k = 0; k < report.keys.size(); ++k) {
    const std::string& key = report.keys[k];
    out += fmt::format("{}{} {}", out.empty() ? "" : " · ", key.substr(key.rfind('.') + 1),
                       point.values[k]);
  }
  return out;
}

std::string refusal_text(const ComparedPoint& point) {
  Error error = point.errors.front();
  error.file.clear();
  return to_string(error);
}

std::string compare_headline(const CompareReport& report) {
  std::vector<const Scenario*> scenarios;
  for (const ComparedPoint& point : report.points) {
    if (point.prediction) scenarios.push_back(&*point.scenario);
  }
  const std::string common = headline(scenarios);
  return common.empty() ? "Forecasts side by side" : common;
}

ScalingFigures scaling_of(const CompareReport& report, const ComparedPoint& point) {
  const auto first = std::find_if(report.points.begin(), report.points.end(),
                                  [](const ComparedPoint& one) { return one.prediction; });
  const double speed = point.prediction->tokens_per_s / first->prediction->tokens_per_s;
  return {speed, speed * gpus(*first) / gpus(point)};
}

Written compare_table(const CompareReport& report) { return written(report, Form::kText); }
Written compare_markdown(const CompareReport& report) { return written(report, Form::kMarkdown); }

}  // namespace stepcast
