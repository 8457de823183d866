// SPDX-License-Identifier: Apache-2.0
// The recorded runs that a forecast resembles most, and how forecasts of them erred.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "layout/scenario.h"
#include "predict/measured_errors.h"
#include "report/document_form.h"

namespace stepcast {

struct RecordedRun {
  std::string run;        // "suite/id"
  double likeness = 0;    // 1: the same mechanisms
  double error = 0;       // forecast over measured step time, less 1
  std::string otherwise;  // mechanisms that only one of the two has
};

// The nearest first; none where no recorded run has half of the mechanisms.
std::vector<RecordedRun> recorded_runs(const Scenario& scenario, const MeasuredErrors& errors);

Written recorded_runs_table(const std::vector<RecordedRun>& runs, Form form);
nlohmann::ordered_json recorded_runs_object(const std::vector<RecordedRun>& runs);

}  // namespace stepcast
