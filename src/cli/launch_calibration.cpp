// SPDX-License-Identifier: Apache-2.0
#include "cli/launch_calibration.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "calibrate/cpu_profile.h"
#include "cli/launch_run.h"
#include "cli/rank_results.h"
#include "core/atomic_file.h"
#include "core/text/escape.h"
#include "launch/host_facts.h"
#include "program/executable.h"

namespace stepcast::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Scenarios of one number of ranks are measured in one launch.
std::map<std::int64_t, std::vector<json>> by_ranks(const std::vector<std::string>& scenarios,
                                                   const DataFolders& folders, Errors& errors) {
  std::map<std::int64_t, std::vector<json>> out;
  for (const std::string& text : scenarios) {
    json stated = json::parse(text);
    stated.erase("profile");  // it is what this is about to make
    const auto document = JsonDocument::from(stated, "scenario");
    const auto scenario = read_scenario(*document, folders);
    const Errors wrong = scenario ? check_executable(*scenario) : scenario.error();
    errors.insert(errors.end(), wrong.begin(), wrong.end());
    if (wrong.empty()) out[scenario->cluster.gpus()].push_back(std::move(stated));
  }
  return out;
}

json job_of(const CalibrationRequest& request, const std::vector<json>& scenarios,
            std::int64_t ranks, const std::string& folder) {
  const std::string own = fs::absolute(folder).string();
  return {{"stepcast_job", 1},
          {"task", "calibrate"},
          {"scenarios", scenarios},
          {"data", job_folders(request.folders)},
          {"results", own},
          {"journal", own},
          {"budget_s", request.budget_s},
          {"grid", request.grid},
          {"shares_cores", ranks > usable_cores()},
          {"target_half_width", request.target_half_width}};
}

Error failed_launch(const LaunchOutcome& outcome) {
  return {ErrorCode::kIo, "the calibration: " + outcome.message, "", "--backend",
          "run it again; finished points are not measured twice"};
}

}  // namespace

Result<std::string> calibrate(const CalibrationRequest& request, const OutputOptions& output) {
  Errors errors;
  const auto launches = by_ranks(request.scenarios, request.folders, errors);
  if (!errors.empty()) return failure(errors);
  if (launches.size() > 1) {
    note(
        output,
        "warning: scenarios of different numbers of ranks load the machine differently; operations "
        "that they share count as measured with the most ranks. Profiles made apart fit better");
  }
  CpuMeasurements measurements;
  measurements.machine = read_machine_facts({});
  measurements.facts = this_machine();
  RankResults results;
  const fs::path work = request.profile + ".journal";
  for (const auto& [ranks, scenarios] : launches) {
    const fs::path folder = work / fmt::format("{}-ranks", ranks);
    std::error_code failed;
    fs::create_directories(folder, failed);
    if (failed) {
      return failure({ErrorCode::kIo, fmt::format("cannot be made: {}", failed.message()),
                      folder.string(), "-o", "name a profile in a folder that can be written"});
    }
    const auto outcome =
        launch_job(json_text(job_of(request, scenarios, ranks, folder.string()), 2) + "\n",
                   (folder / "job.json").string(), static_cast<int>(ranks), 0, output);
    if (!outcome) return failure(outcome.error());
    for (const std::string& warning : outcome->warnings) note(output, "warning: " + warning);
    if (!outcome->ok()) return failure({failed_launch(*outcome)});
    results.begin_launch();
    for (std::int64_t r = 0; r < ranks; ++r) {
      results.read(folder / fmt::format("rank-{}.json", r), errors);
    }
  }
  if (!errors.empty()) return failure(errors);
  results.move_to(measurements.operations, measurements.collectives);
  const auto profile = make_cpu_profile(measurements, fs::path(request.profile).stem().string());
  if (!profile) return failure(profile.error());
  if (10 * profile->unrepeated.size() > measurements.operations.size()) {
    note(output, fmt::format("warning: {} of {} operations took other times in one half of the run "
                             "than in the other, {} for example: the machine was busy. They get "
                             "their medians; calibrate again when it is quiet",
                             profile->unrepeated.size(), measurements.operations.size(),
                             profile->unrepeated.front()));
  }
  if (auto written = write_cpu_profile(*profile, request.profile); !written) {
    return failure(written.error());
  }
  std::error_code ignored;
  if (!request.keeps_journal) fs::remove_all(work, ignored);
  return request.profile;
}

int report_failed_calibration(const Errors& errors) {
  report_errors(errors);
  return errors.front().code == ErrorCode::kIo ? kInternalError : kUsageError;
}

CalibrationRequest request_for(const std::string& scenario, const DataRoot& data,
                               const std::string& profile_path, double budget_s) {
  CalibrationRequest request;
  request.scenarios = {scenario};
  request.folders = data.folders;
  request.profile = profile_path;
  request.budget_s = budget_s;
  request.grid = false;
  return request;
}

}  // namespace stepcast::cli
