// SPDX-License-Identifier: Apache-2.0
// The forecast that `validate` sets beside a run, and the profile that prices it.
#pragma once

#include <string>

#include "cli/validated_run.h"

namespace stepcast {

struct Prediction;
}  // namespace stepcast

namespace stepcast::cli {

struct StatedScenario;

// `trace`: with slices, for pictures.
Result<Prediction> forecast(const ValidatedRun& run, const Scenario& scenario,
                            const DataFolders& folders, bool trace = false);

// Memory needs no measurement: what does not fit is neither calibrated nor run.
Result<Prediction> data_sheet_forecast(const ValidatedRun& run, const Scenario& scenario,
                                       const DataFolders& folders, bool trace = false);

// The forecast of the rank that the numerics are held against, on a GPU like those of the run.
Result<Prediction> reference_forecast(const StatedScenario& stated, const DataFolders& folders);

struct CalibrationChoice {
  std::string when = "auto";  // "never", "always"
  double budget_s = 60;
};

// Makes sure that the user's profile, or the device's own, has what the layout needs, as `choice`
// says. What has to be measured goes into the named file, which may not exist yet, or else into
// `folder`, and the scenario then names it. Only this function calibrates. Returns the exit code;
// errors have been reported.
int prepare_profile(const CalibrationChoice& choice, const ValidatedRun& run,
                    StatedScenario& stated, const DataRoot& data, const std::string& folder,
                    const OutputOptions& output);

}  // namespace stepcast::cli
