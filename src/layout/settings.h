// SPDX-License-Identifier: Apache-2.0
// Training, layout and the rules that follow from them: a scenario without model and cluster.
#pragma once

#include "layout/framework_rules.h"
#include "layout/layout.h"
#include "layout/training.h"

namespace stepcast {

// Holds what `training` and `layout` come to.
struct Settings {
  Training training;
  Layout layout;
  FrameworkRules rules;
};

}  // namespace stepcast
