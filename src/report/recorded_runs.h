// SPDX-License-Identifier: Apache-2.0
// The recorded runs that a forecast resembles most, and how forecasts of them erred.
#pragma once

#include <string>
#include <vector>

#include "core/json_fwd.h"
#include "predict/measured_errors.h"
#include "report/document_form.h"

namespace stepcast {

struct Scenario;

struct RecordedRun {
  std::string run;        // "suite/id"
  double likeness = 0;    // 1: the same mechanisms
  double error = 0;       // forecast over measured step time, less 1
  std::string otherwise;  // mechanisms that only one of the two has
};

// A mechanism of the scenario that forecasts of recorded runs with it missed.
struct RecordedMechanism {
  std::string name;
  int runs = 0;
  double error = 0;  // their mean: forecast over measured step time, less 1
};

struct RecordedRuns {
  std::vector<RecordedRun> nearest;           // first; none has less than half in common
  std::vector<RecordedMechanism> mechanisms;  // the worst first

  bool empty() const { return nearest.empty() && mechanisms.empty(); }
};

RecordedRuns recorded_runs(const Scenario& scenario, const MeasuredErrors& errors);

// "forecasts were off by -3.1 % to +3.6 % for the 4 recorded runs most like it; by -35.8 % in the
// mean of 2 runs with fsdp: context parallelism, ring"; empty without any.
std::string recorded_runs_text(const RecordedRuns& runs);
Written recorded_runs_table(const RecordedRuns& runs, Form form);
Json recorded_runs_object(const RecordedRuns& runs);

}  // namespace stepcast
