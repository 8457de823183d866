// SPDX-License-Identifier: Apache-2.0
// The passes of a pipeline stage over one step, as pictures and strips draw them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "operation/phase.h"

namespace stepcast {

struct Prediction;
struct TraceSlice;

struct PassBox {
  double start = 0, end = 0;  // seconds
  Phase phase = Phase::kForward;
  std::int32_t micro_batch = -1;
  std::int32_t chunk = -1;
  bool communication = false;  // on the compute stream, which waits for it
  std::string name;
};

struct DrawnSpan {
  double start = 0, end = 0;
};

struct PipelineRow {
  std::string name;
  std::string note;  // beside the name where there is room
  std::vector<PassBox> boxes;
  std::vector<DrawnSpan> traffic;
};

// Slices of one rank class or rank: passes that touch and go on with each other are one box.
PipelineRow pipeline_row(const std::vector<const TraceSlice*>& slices);
// A row for each stage, of its lowest rank, with its bubble where there are several. The prediction
// has slices.
std::vector<PipelineRow> pipeline_rows(const Prediction& prediction);
// Seconds from the step's begin to the end of all rows.
double length_of(const Prediction& prediction, const std::vector<PipelineRow>& rows);

}  // namespace stepcast
