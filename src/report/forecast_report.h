// SPDX-License-Identifier: Apache-2.0
// The outcome of `predict` in every format: the forecast of a step, with the recorded runs that it
// resembles and, where they were asked for, the whole run and an explanation.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "economics/run_forecast.h"
#include "report/document_form.h"
#include "report/loss_report.h"
#include "report/recorded_runs.h"

namespace stepcast {

struct Prediction;
struct Profile;
struct Scenario;

struct ForecastReport {
  const Scenario& scenario;
  const Prediction& prediction;
  std::optional<RunOutlook> run = {};  // of a scenario that says something about its run
  RecordedRuns recorded = {};
  const Profile* explained = nullptr;   // given: also what each cost rests on
  bool pipeline = false;                // draws it, of a prediction with slices
  std::uint64_t seed = 0;               // of the run that an explanation draws
  std::optional<LossReport> loss = {};  // of a part of the cluster, whose forecast this is without
};

Written forecast_text(const ForecastReport& report, Form form);  // text or Markdown
Written forecast_csv(const ForecastReport& report);
Written forecast_json(const ForecastReport& report);

}  // namespace stepcast
