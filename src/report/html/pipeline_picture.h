// SPDX-License-Identifier: Apache-2.0
// The pipeline of one step as the zero-bubble papers draw it: a row per stage, a box per pass with
// the number of its micro-batch, idle time empty (Qi et al. 2024, figure 2). Below the boxes of a
// row runs a thin lane: collectives and messages beside the compute stream. A step of very many
// passes is folded: the middle of its time axis is cut out.
#pragma once

#include <string>
#include <vector>

#include "report/html/markup.h"
#include "report/pipeline_row.h"

namespace stepcast::html {

struct PipelinePicture {
  std::string id;  // unique in the page
  std::string label;
  double length = 0;  // seconds, of the time axis
  std::vector<PipelineRow> rows;
};

Html pipeline_picture(const PipelinePicture& picture);

}  // namespace stepcast::html
