// SPDX-License-Identifier: Apache-2.0
// Requirements that a forecast must keep so that a build passes: "fits, mfu>=0.4, days<=30,
// cost<=100k".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "economics/run_forecast.h"

namespace stepcast {

struct Prediction;

// A figure that can be required; a row of the table in requirement.cpp.
struct RequiredFigure;

struct Requirement {
  std::string text;  // as it was written, without spaces
  const RequiredFigure* figure = nullptr;
  bool at_least = false;  // or at most
  double limit = 0;       // in the figure's unit; 1 where it is a truth
};

// Reads a list with commas. Errors, at "--require": figures that are not known, limits that are no
// number in the figure's unit, truths with a limit.
Result<std::vector<Requirement>> parse_requirements(std::string_view text);

// A sentence for each requirement that is not kept. Errors, at "--require": figures that this
// forecast does not have, such as days without tokens; `run` is null where nothing is said of one.
Result<std::vector<std::string>> broken_requirements(const std::vector<Requirement>& requirements,
                                                     const Prediction& prediction,
                                                     const RunOutlook* run);

}  // namespace stepcast
