// SPDX-License-Identifier: Apache-2.0
// A forecast for people: terminal text, Markdown, a page, and CSV for spreadsheets.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "predict/prediction.h"

namespace stepcast {

struct TextStyle {
  bool color = false;  // ANSI escapes
};

// Verdict, where the time goes, from ideal to forecast, memory per stage, critical path.
std::string prediction_table(const Scenario& scenario, const Prediction& prediction,
                             const TextStyle& style = {});
std::string prediction_markdown(const Scenario& scenario, const Prediction& prediction);

// A page of its own (docs/reports.md), of a forecast made with PredictOptions::trace.
std::string prediction_html(const Scenario& scenario, const Prediction& prediction);

// One line of figures under one line of titles; units in the titles. `more`: further columns.
std::string prediction_csv(const Scenario& scenario, const Prediction& prediction,
                           const std::vector<std::pair<std::string, double>>& more = {});

}  // namespace stepcast
