// SPDX-License-Identifier: Apache-2.0
// The outcome of `compare` in every format (docs/compare.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/text/written.h"
#include "layout/scenario.h"
#include "predict/prediction.h"
#include "report/key_difference.h"

namespace stepcast {

// One point of the grid.
struct ComparedPoint {
  std::vector<std::string> values;  // of the varied keys
  std::optional<Scenario> scenario;
  std::optional<Prediction> prediction;
  Errors errors;                             // why there is none
  std::string stated_layout = {};            // then: the layout as it was asked for, as JSON text
  std::optional<Prediction> unchanged = {};  // without the report's what-ifs, if it has some
};

// A change of one resource does this to one layout.
struct Sensitivity {
  std::string resource, title;
  Seconds slower, faster;  // step times with the resource down and up
};

enum class Scaling { kNone, kStrong, kWeak };

// The axis of scenario files. No scenario has such a key.
inline constexpr const char* kFilesKey = "file";

struct CompareReport {
  std::vector<std::string> keys;           // varied; "file" first where files are compared
  std::vector<KeyDifference> differences;  // between the files, values in their order
  std::vector<ComparedPoint> points;       // in the order of the grid
  Scaling scaling = Scaling::kNone;        // speed-up and efficiency against the first point
  std::vector<std::string> what_if;        // changes in all forecasts, "nic=+20%"
  std::vector<Sensitivity> sensitivity;    // of the best point, widest first
  double change = 0;                       // of each resource, a fraction
  bool pipelines = false;                  // drawn in text too, of points with slices
};

// The points that have a forecast: first those that fit, by step time, then those that do not fit.
std::vector<std::size_t> ranked(const CompareReport& report);
// The place of each point in that order, from 1 on; 0 without a forecast.
std::vector<std::size_t> places(const CompareReport& report);

// Throughput against that of the first point with a forecast, and per GPU.
struct ScalingFigures {
  double speed_up = 0, efficiency = 0;
};
ScalingFigures scaling_of(const CompareReport& report, const ComparedPoint& point);

// The order in which people read the points: by place, and last those that a rule refuses. Under
// scaling they stay in the order of the grid, in which the curve grows.
std::vector<std::size_t> reading_order(const CompareReport& report);
// The points whose pipelines are drawn side by side: the first two of reading_order() that have
// several stages.
std::vector<std::size_t> drawn_beside(const CompareReport& report);
// The points with slices and several stages, in reading_order().
std::vector<std::size_t> with_pipelines(const CompareReport& report);
// Why a point has no forecast, in a sentence. Its file is that of all points and not named.
std::string refusal_text(const ComparedPoint& point);
// "zero 1 · micro_batch 2": the varied keys by their last part. Empty where nothing is varied.
std::string point_text(const CompareReport& report, const ComparedPoint& point);
// The files that are compared, in the order of their columns; none where there is one scenario.
std::vector<std::string> compared_files(const CompareReport& report);
inline constexpr const char* kNoDifference = "None: they say the same run.";
// Names what all forecasts have in common: "gpt3-175b, megatron bf16" where the cluster is varied.
std::string compare_headline(const CompareReport& report);

Written compare_table(const CompareReport& report);
Written compare_markdown(const CompareReport& report);
Written compare_csv(const CompareReport& report);
Written compare_json(const CompareReport& report);
Written compare_html(const CompareReport& report);  // a page (docs/reports.md)

}  // namespace stepcast
