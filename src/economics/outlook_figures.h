// SPDX-License-Identifier: Apache-2.0
// The figures of a run's forecast, declared once: columns of tables and of CSV, and what --require
// may name, follow from a row. Its sentences and its JSON say more (report/run_report.h).
#pragma once

#include <optional>
#include <span>

#include "economics/run_forecast.h"

namespace stepcast {

enum class OutlookUnit { kSeconds, kFraction, kDollars, kRate, kTruth };

struct OutlookFigure {
  const char* key;                                     // of CSV
  std::optional<double> (*of)(const RunOutlook& run);  // nothing: it never ends, or has no price
  OutlookUnit unit;
  const char* title = nullptr;     // of a column where people read; null: none has it
  bool of_length = false;          // a column only where the tokens of the run are given
  const char* required = nullptr;  // its name in --require, where seconds are days
  const char* needs = "";          // says what to give where it is not there
};
std::span<const OutlookFigure> outlook_figures();

}  // namespace stepcast
