// SPDX-License-Identifier: Apache-2.0
#include "cli/validate_forecast.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/calibrate_gpu.h"
#include "cli/calibrate_job.h"

namespace stepcast::cli {
namespace {

namespace fs = std::filesystem;

PredictOptions options_of(const ValidatedRun& run) {
  PredictOptions options;
  options.alone = run.alone;
  options.own_kernels = run.on_gpu();
  return options;
}

// Whether a calibration on this machine has nothing to add. On processors it measures all of it; of
// GPUs it measures the kernels, where a profile of another GPU or of other shapes says less.
bool is_measured(const ValidatedRun& run, const Forecast& forecast) {
  const Provenance worst = run.on_gpu() ? Provenance::kInterpolated : Provenance::kExtrapolated;
  for (const OperationPrice& price : forecast.prices) {
    if (price.provenance > worst && !(run.on_gpu() && price.is_collective())) return false;
  }
  return run.on_gpu() ||
         forecast.prediction.provenance[static_cast<std::size_t>(Provenance::kDataSheet)] == 0;
}

bool names_file(const std::string& profile) {
  return profile.find('/') != std::string::npos || profile.ends_with(".json");
}

// Into `profile`; returns the exit code.
int calibrate_into(const std::string& profile, double budget_s, const ValidatedRun& run,
                   const StatedScenario& stated, const DataRoot& data,
                   const OutputOptions& output) {
  const CalibrationRequest request = request_for(stated.text, data, profile, budget_s);
  if (run.on_gpu()) {
    OutputOptions gpu = output;
    gpu.file = profile;
    return calibrate_gpu(request, gpu);
  }
  const auto made = calibrate(request, output);
  return made ? static_cast<int>(kOk) : report_failed_calibration(made.error());
}

}  // namespace

Result<Forecast> forecast(const ValidatedRun& run, const Scenario& scenario,
                          const DataFolders& folders) {
  auto prediction = predict(scenario, folders, options_of(run));
  if (!prediction) return failure(prediction.error());
  auto prices = operation_table(scenario, folders, run.alone.value_or(RankId(0)), run.on_gpu());
  if (!prices) return failure(prices.error());
  return Forecast{std::move(*prediction), std::move(*prices)};
}

Result<Prediction> data_sheet_forecast(const ValidatedRun& run, const Scenario& scenario,
                                       const DataFolders& folders) {
  Scenario unmeasured = scenario;
  unmeasured.profile = "none";
  return predict(unmeasured, folders, options_of(run));
}

int prepare_profile(const CalibrationChoice& choice, const ValidatedRun& run,
                    StatedScenario& stated, const DataRoot& data, const std::string& folder,
                    const OutputOptions& output) {
  Scenario& scenario = stated.scenario;
  std::error_code none;
  const bool file = names_file(scenario.profile);
  const bool automatic = choice.when == "auto";
  const bool to_be_made = automatic && file && !fs::exists(scenario.profile, none);
  if (choice.when != "always" && !to_be_made) {
    // "none" is a wish to see the data sheet's forecast.
    if (choice.when == "never" || scenario.profile == "none") return kOk;
    const auto known = forecast(run, scenario, data.folders);
    if (!known) return report_failed_calibration(known.error());
    if (is_measured(run, *known)) return kOk;
  }
  // What another calibration has measured is not this command's to replace.
  const bool keeps = automatic && file && !to_be_made;
  if (keeps) {
    note(output, fmt::format("note: {} lacks what this layout needs: it is measured for this "
                             "run alone (--calibrate always replaces the file)",
                             scenario.profile));
  }
  const std::string profile =
      file && !keeps ? scenario.profile : (fs::path(folder) / "profile.json").string();
  const int code = calibrate_into(profile, choice.budget_s, run, stated, data, output);
  if (code == kOk) scenario.profile = profile;
  return code;
}

}  // namespace stepcast::cli
