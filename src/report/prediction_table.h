// SPDX-License-Identifier: Apache-2.0
// A forecast for people: terminal text, Markdown, a page, and CSV for spreadsheets.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "economics/run_forecast.h"
#include "report/document_form.h"
#include "report/recorded_runs.h"

namespace stepcast {

struct Prediction;
struct Scenario;

// Text or Markdown: verdict, where the time goes, from ideal to forecast, memory per stage,
// critical path.
Written prediction_table(const Scenario& scenario, const Prediction& prediction,
                         Form form = Form::kText);

// A page of its own (docs/reports.md), of a forecast made with PredictOptions::trace. `run`: of the
// whole run, or null.
Written prediction_html(const Scenario& scenario, const Prediction& prediction,
                        const RunOutlook* run = nullptr, const RecordedRuns& recorded = {});
// Its verdict, figures, waterfall, pipeline and memory, to stand in another page.
Written prediction_pictures(const Scenario& scenario, const Prediction& prediction,
                            const RunOutlook* run = nullptr);

// One line of figures under one line of titles; units in the titles. `more`: further columns.
Written prediction_csv(const Scenario& scenario, const Prediction& prediction,
                       const std::vector<std::pair<std::string, double>>& more = {});

}  // namespace stepcast
