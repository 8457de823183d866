// SPDX-License-Identifier: Apache-2.0
#include "cli/validate_forecast.h"

#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "cli/calibrate_gpu.h"
#include "cli/launch_calibration.h"
#include "cli/launch_run.h"
#include "cli/stated_scenario.h"
#include "core/data_name.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "layout/rank_grid.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"
#include "predict/operation_table.h"
#include "predict/prediction.h"
#include "program/reference_scenario.h"
#include "validate/executor_memory.h"

namespace stepcast::cli {
namespace {

namespace fs = std::filesystem;

PredictOptions options_of(const ValidatedRun& run) {
  PredictOptions options;
  options.alone = run.alone;
  options.own_kernels = run.on_gpu();
  return options;
}

// Reads the kernels as the run's job names them. A wish for the faster ones means cuDNN's here,
// which are the faster ones on GPUs that have them.
AttentionBy attention_of_runs() {
  const std::string wanted = attention_wanted();
  if (wanted == "own") return AttentionBy::kOwnKernels;
  return wanted == "atomics" ? AttentionBy::kAtomics : AttentionBy::kSameBits;
}

// The rank that runs alone, else one of each stage.
std::vector<RankId> ranks_of(const ValidatedRun& run, const Scenario& scenario) {
  if (run.alone) return {*run.alone};
  const RankGrid grid(scenario.layout);
  std::vector<RankId> out;
  for (std::int32_t stage = 0; stage < static_cast<std::int32_t>(scenario.layout.pp); ++stage) {
    GridPoint point;
    point.pp = stage;
    out.push_back(grid.rank(point));
  }
  return out;
}

// Whether a calibration on this machine would add nothing. On processors a calibration measures
// everything. On GPUs it measures the kernels, which is better than a profile of another GPU or of
// other shapes.
Result<bool> is_measured(const ValidatedRun& run, const Scenario& scenario,
                         const DataFolders& folders) {
  const Provenance worst = run.on_gpu() ? Provenance::kInterpolated : Provenance::kExtrapolated;
  for (const RankId rank : ranks_of(run, scenario)) {
    const auto prices = operation_table(scenario, folders, rank, run.on_gpu());
    if (!prices) return failure(prices.error());
    for (const OperationPrice& price : *prices) {
      if (price.provenance > worst && !(run.on_gpu() && price.is_collective())) return false;
    }
  }
  if (run.on_gpu()) return true;
  const auto known = forecast(run, scenario, folders);
  if (!known) return failure(known.error());
  return known->provenance[static_cast<std::size_t>(Provenance::kDataSheet)] == 0;
}

// Calibrates into the file `profile`; returns the exit code.
int calibrate_into(const std::string& profile, double budget_s, const ValidatedRun& run,
                   const StatedScenario& stated, const DataRoot& data,
                   const OutputOptions& output) {
  const CalibrationRequest request = request_for(stated.text, data, profile, budget_s);
  if (run.on_gpu()) {
    OutputOptions gpu = output;
    gpu.file = profile;
    return calibrate_gpu(request, gpu);
  }
  return calibrate(request, output);
}

}  // namespace

Result<Prediction> forecast(const ValidatedRun& run, const Scenario& scenario,
                            const DataFolders& folders, bool trace) {
  PredictOptions options = options_of(run);
  options.trace = trace;
  auto out = predict(scenario, folders, options);
  if (out && run.on_gpu()) {
    count_executor_memory(scenario, attention_of_runs(), *out);
  }
  return out;
}

Result<Prediction> data_sheet_forecast(const ValidatedRun& run, const Scenario& scenario,
                                       const DataFolders& folders, bool trace) {
  Scenario unmeasured = scenario;
  unmeasured.profile = "none";
  return forecast(run, unmeasured, folders, trace);
}

Result<Prediction> reference_forecast(const StatedScenario& stated, const DataFolders& folders) {
  const auto document = JsonDocument::from(reference_scenario(to_json(stated.scenario)),
                                           "the reference of the numerics");
  auto reference = read_scenario(*document, folders);
  if (!reference) return failure(reference.error());
  reference->cluster.spec.accelerator = stated.scenario.cluster.spec.accelerator;
  reference->profile = "none";
  PredictOptions options;
  options.own_kernels = true;
  auto out = predict(*reference, folders, options);
  if (out) count_executor_memory(*reference, AttentionBy::kOwnKernels, *out);
  return out;
}

int prepare_profile(const CalibrationChoice& choice, const ValidatedRun& run,
                    StatedScenario& stated, const DataRoot& data, const std::string& folder,
                    const OutputOptions& output) {
  Scenario& scenario = stated.scenario;
  std::error_code none;
  const bool file = is_path(scenario.profile);
  const bool automatic = choice.when == "auto";
  const bool to_be_made = automatic && file && !fs::exists(scenario.profile, none);
  if (choice.when != "always" && !to_be_made) {
    // Whoever names the profile "none" wants the data sheet's forecast.
    if (choice.when == "never" || scenario.profile == "none") return kOk;
    const auto measured = is_measured(run, scenario, data.folders);
    if (!measured) return report_errors(measured.error());
    if (*measured) return kOk;
  }
  if (to_be_made) {
    note(output,
         fmt::format("note: {} does not exist: it is measured and written", scenario.profile));
  }
  // This command must not replace what another calibration has measured.
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
