// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "core/json_tree.h"
#include "report/breakdown.h"
#include "report/figure_columns.h"
#include "report/html/compare_sections.h"
#include "report/html/prediction_sections.h"
#include "report/number_text.h"

namespace stepcast {
namespace {

using namespace html;

std::string verdict_sentence(const CompareReport& report, const std::vector<std::size_t>& order) {
  const ComparedPoint& best = report.points[order.front()];
  const Prediction& p = *best.prediction;
  const std::string name = point_text(report, best);
  std::string out = fmt::format("{}{} a step, an MFU of {}. {}",
                                name.empty() ? "It takes " : "The fastest is " + name + ": ",
                                time_text(p.step_time), mfu_text(p), memory_words(p));
  if (order.size() > 1) {
    Seconds slowest;
    for (const std::size_t index : order) {
      slowest = std::max(slowest, report.points[index].prediction->step_time);
    }
    out += fmt::format("; the slowest takes {:.2f} times as long", slowest / p.step_time);
  }
  const auto large =
      static_cast<std::size_t>(std::count_if(order.begin(), order.end(), [&](std::size_t index) {
        return !report.points[index].prediction->fits;
      }));
  const std::size_t refused = report.points.size() - order.size();
  if (large > 0 && p.fits) out += fmt::format("; do not fit: {} of {}", large, order.size());
  if (refused > 0)
    out += fmt::format("; refused by rules: {} of {}", refused, report.points.size());
  return out + ".";
}

}  // namespace

Written compare_html(const CompareReport& report) {
  const std::vector<std::size_t> order = ranked(report);
  const ComparedPoint& best = report.points[order.front()];
  Page page;
  page.title = compare_headline(report);
  page.subtitle = layout_text(*best.scenario);
  page.mood = best.prediction->fits ? Mood::kGood : Mood::kBad;
  page.verdict = verdict_sentence(report, order);
  page.figures = prediction_figures(*best.scenario, *best.prediction);
  if (!compared_files(report).empty()) page.sections.push_back(files_section(report));
  if (report.scaling != Scaling::kNone) page.sections.push_back(scaling_section(report));
  if (!report.what_if.empty()) page.sections.push_back(what_if_section(report));
  if (!report.keys.empty()) {
    std::string keys;
    for (const std::string& key : report.keys) keys += (keys.empty() ? "" : ", ") + key;
    page.subtitle =
        fmt::format("{} forecasts by {} · first place: {}", order.size(), keys, page.subtitle);
    page.sections.push_back(points_section(report));
    if (order.size() > 1 && report.scaling == Scaling::kNone) {
      page.sections.push_back(differences_section(report));
    }
  }
  if (!with_pipelines(report).empty()) page.sections.push_back(pipelines_section(report));
  if (!report.sensitivity.empty()) page.sections.push_back(tornado_section(report));
  for (Section& section :
       std::vector<Section>{time_section(*best.prediction), memory_section(*best.prediction),
                            path_section(*best.prediction), certainty_section(*best.prediction),
                            scenario_section(*best.scenario)}) {
    page.sections.push_back(order.size() > 1 ? of_first_place(std::move(section))
                                             : std::move(section));
  }
  page.data = compare_json(report);
  return page_text(page);
}

}  // namespace stepcast
