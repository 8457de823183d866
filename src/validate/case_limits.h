// SPDX-License-Identifier: Apache-2.0
// Limits that a suite sets on its own cases (docs/formats/suite.md, "Limits").
#pragma once

#include <vector>

#include "validate/align.h"
#include "validate/tolerance.h"

namespace stepcast {

// One finding per limit that a case does not keep, those first that are furthest beyond theirs. A
// case that cannot be predicted keeps none; one that is not supported yet is not judged.
std::vector<Finding> broken_case_limits(const std::vector<CaseResult>& cases);

// Whether any case has a limit, so that the outcome is a verdict.
bool limits_any(const std::vector<CaseResult>& cases);

}  // namespace stepcast
