// SPDX-License-Identifier: Apache-2.0
// A baseline: the figures of an earlier check, kept in a file that is reviewed when it changes
// (docs/formats/suite.md, "Baseline").
#pragma once

#include <string>
#include <vector>

#include "core/result.h"
#include "validate/check.h"
#include "validate/tolerance.h"

namespace stepcast {

struct BaselineComparison {
  std::vector<Finding> regressions;  // a figure got worse, a case fails or is gone
  std::vector<Finding> changes;      // better figures, changed forecasts, new cases
};

std::string baseline_text(const CheckReport& report);

// `text` is the content of the baseline file `file`.
Result<BaselineComparison> compare_with_baseline(const CheckReport& report, const std::string& text,
                                                 const std::string& file);

}  // namespace stepcast
