// SPDX-License-Identifier: Apache-2.0
// The pipeline of one step as the zero-bubble papers draw it: a row per stage, a box per pass with
// the number of its micro-batch, idle time empty (Qi et al. 2024, figure 2). Below the boxes of a
// row runs a thin lane: collectives and messages beside the compute stream. A step of very many
// passes is folded: the middle of its time axis is cut out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "predict/prediction.h"
#include "report/html/markup.h"

namespace stepcast::html {

struct PassBox {
  double start = 0, end = 0;  // seconds
  Phase phase = Phase::kForward;
  std::int32_t micro_batch = -1;
  std::int32_t chunk = -1;
  bool communication = false;  // on the compute stream, which waits for it
  std::string name;
};

struct TimeSpan {
  double start = 0, end = 0;
};

struct PipelineRow {
  std::string name;
  std::string note;  // beside the name where there is room
  std::vector<PassBox> boxes;
  std::vector<TimeSpan> traffic;
};

struct PipelinePicture {
  std::string id;  // unique in the page
  std::string label;
  double length = 0;  // seconds, of the time axis
  std::vector<PipelineRow> rows;
};

// Slices of one rank class or rank: passes that touch and go on with each other are one box.
PipelineRow pipeline_row(const std::vector<const TraceSlice*>& slices);

Html pipeline_picture(const PipelinePicture& picture);

}  // namespace stepcast::html
