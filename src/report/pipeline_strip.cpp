// SPDX-License-Identifier: Apache-2.0
#include "report/pipeline_strip.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text/escape.h"
#include "report/number_text.h"
#include "report/pipeline_row.h"

namespace stepcast {
namespace {

constexpr std::size_t kColumns = 80;  // of time; the stage and its bubble stand beside them

struct Mark {
  char letter, rest;  // of a pass, and what fills it
};

Mark mark_of(const PassBox& box) {
  if (box.communication) return {'.', '.'};
  switch (box.phase) {
    case Phase::kForward:
      return {'F', '='};
    case Phase::kRecompute:
      return {'R', '='};
    case Phase::kBackward:
      return {'B', '-'};
    case Phase::kWeightGradient:
      return {'W', '~'};
    case Phase::kOptimizer:
      return {'S', 's'};
  }
  return {' ', ' '};
}

std::size_t column_of(double time, double length) {
  const double share = length > 0 ? time / length : 0;
  return std::min(kColumns,
                  static_cast<std::size_t>(std::lround(share * static_cast<double>(kColumns))));
}

std::string strip_of(const PipelineRow& row, double length) {
  std::string out(kColumns, ' ');
  for (const PassBox& box : row.boxes) {
    const std::size_t begin = column_of(box.start, length), end = column_of(box.end, length);
    if (begin >= end) continue;
    const Mark mark = mark_of(box);
    std::string words(1, mark.letter);
    if (box.micro_batch >= 0 && !box.communication) words += fmt::format("{}", box.micro_batch);
    if (words.size() > end - begin) words.resize(1);
    words.resize(end - begin, mark.rest);
    out.replace(begin, end - begin, words);
  }
  return out;
}

constexpr const char* kLegend =
    "F forward, R forward again, B backward, W weight gradients: each with its micro-batch.";

}  // namespace

Written pipeline_strips(const std::vector<NamedPipeline>& pipelines, Form form) {
  std::vector<std::vector<PipelineRow>> all;
  double length = 0;
  for (const NamedPipeline& one : pipelines) {
    all.push_back(pipeline_rows(*one.prediction));
    length = std::max(length, length_of(*one.prediction, all.back()));
  }
  Written strips;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!pipelines[i].name.empty()) strips += line(pipelines[i].name, Form::kText);
    for (const PipelineRow& row : all[i]) {
      strips += line(fmt::format("{:<9}|{}|{:>8}", row.name, strip_of(row, length), row.note),
                     Form::kText);
    }
  }
  const std::string axis =
      fmt::format("S is the step, empty time waits; {} across, the bubble of a stage on the right.",
                  time_text(Seconds(length)));
  const Written legend = line(kLegend, form) + line(axis, form);
  return (form == Form::kMarkdown ? markdown_code_block(strips.text()) : strips) + legend;
}

}  // namespace stepcast
