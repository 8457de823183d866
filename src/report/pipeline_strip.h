// SPDX-License-Identifier: Apache-2.0
// Pipelines of one step as lines of letters: a line per stage, a letter and the number of its
// micro-batch per pass, idle time empty. A hundred columns wide.
#pragma once

#include <string>
#include <vector>

#include "report/document_form.h"

namespace stepcast {

struct Prediction;

struct NamedPipeline {
  std::string name;              // above its lines; empty: nothing
  const Prediction* prediction;  // with slices
};

// All on one time axis, the longest of them over the whole width.
Written pipeline_strips(const std::vector<NamedPipeline>& pipelines, Form form);

}  // namespace stepcast
