// SPDX-License-Identifier: Apache-2.0
// The figures that a run and its forecast both have, declared once: what is compared, printed,
// recorded in a baseline, and may have a limit.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "predict/figures.h"
#include "validate/measured_run.h"

namespace stepcast {

struct RunFigure {
  const char* key;                                            // of files
  const Figure& forecast;                                     // stands beside it
  std::optional<double> (*measured)(const MeasuredRun& run);  // nothing: it has none
  const char* title = nullptr;  // of its row in a table; null: only files and pages
  const Spread* (*spread)(const MeasuredRun& run) = nullptr;
  const char* limited = nullptr;  // as --tolerance and --drift name it
  const char* words = nullptr;    // in what is said about its limit
  double drift = 0;               // from a baseline, unless --drift says otherwise
  bool as_difference = false;     // not as a ratio: a bubble may be zero

  bool is_memory() const { return forecast.unit == FigureUnit::kBytes; }
};

std::span<const RunFigure> run_figures();
// These may have a limit.
std::vector<const RunFigure*> limited_figures();
std::vector<std::string> limited_names();

}  // namespace stepcast
