// SPDX-License-Identifier: Apache-2.0
// How much more work a run does in a step than its scenario says: another batch shows in every
// kernel, and nothing else does so.
#pragma once

#include "diagnose/step_parts.h"

namespace stepcast {

struct ComparedStep {
  const Timeline& timeline;
  const Window& window;
  const StepParts& parts;
};

// 1 where both agree within 2 %, or where nothing tells.
double work_ratio(const ComparedStep& forecast, const ComparedStep& measured, LabelStyle style,
                  const Labels& labels);

}  // namespace stepcast
