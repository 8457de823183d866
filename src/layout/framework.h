// SPDX-License-Identifier: Apache-2.0
// What a framework's name stands for, as data: defaults of scenario keys and the rules beyond them.
// docs/frameworks.md is the table with its reasons; the sources stand beside the values.
#pragma once

#include "layout/scenario.h"

namespace stepcast {

// Defaults of scenario keys that the framework alone decides.
struct FrameworkDefaults {
  int zero = 0;
  bool compile = true;          // elementwise chains run as fused kernels
  bool gradients_fp32 = false;  // 16-bit training keeps and reduces gradients in fp32
};

FrameworkDefaults defaults_of(Framework framework);

// Of a layout whose schedule and zero are resolved.
Overlap default_overlap(Framework framework, int zero, ScheduleKind schedule);

// Of a resolved training and layout.
FrameworkRules rules_of(const Training& training, const Layout& layout);

// What a search may propose: schedules that the framework itself has, and whether it hides
// transfers between stages behind other micro-batches under this schedule.
bool offers(Framework framework, ScheduleKind schedule);
bool offers_pipeline_overlap(Framework framework, ScheduleKind schedule);

}  // namespace stepcast
