// SPDX-License-Identifier: Apache-2.0
#include "cli/launch_calibration.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "calibrate/cpu_profile.h"
#include "calibrate/protocol/journal.h"
#include "cli/kept_results.h"
#include "cli/launch_run.h"
#include "cli/rank_results.h"
#include "core/atomic_file.h"
#include "core/failed_write.h"
#include "core/gathered_errors.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "launch/host_facts.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"
#include "program/executable.h"

namespace stepcast::cli {
namespace {

namespace fs = std::filesystem;
// Scenarios of one number of ranks are measured in one launch.
std::map<std::int64_t, std::vector<SortedJson>> by_ranks(const std::vector<std::string>& scenarios,
                                                         const DataFolders& folders,
                                                         Errors& errors) {
  std::map<std::int64_t, std::vector<SortedJson>> out;
  for (const std::string& text : scenarios) {
    SortedJson stated = SortedJson::parse(text);
    stated.erase("profile");  // it is what this is about to make
    const auto document = JsonDocument::from(stated, "scenario");
    const auto scenario = read_scenario(*document, folders);
    const Errors wrong = scenario ? check_executable(*scenario) : scenario.error();
    errors.insert(errors.end(), wrong.begin(), wrong.end());
    if (wrong.empty()) out[scenario->cluster.gpus()].push_back(std::move(stated));
  }
  return out;
}

std::string text_of(const CalibrationRequest& request, const std::vector<SortedJson>& scenarios,
                    std::int64_t ranks, const std::string& folder) {
  Job out = job_of(request, scenarios, folder);
  out.shares_cores = ranks > usable_cores();
  return job_text(out);
}

fs::path folder_of(const fs::path& work, std::int64_t ranks) {
  return work / fmt::format("{}-ranks", ranks);
}

std::string file_of(std::int64_t rank, const char* ending) {
  return fmt::format("rank-{}.{}", rank, ending);
}

// A rank would find out only once all are started, and for its own journal alone.
Errors bad_points(const fs::path& folder, std::int64_t ranks) {
  Errors out;
  for (std::int64_t r = 0; r < ranks; ++r) {
    append(out, Journal::check((folder / file_of(r, "jsonl")).string()));
  }
  return out;
}

using Launches = std::map<std::int64_t, std::vector<SortedJson>>;  // by the number of ranks

// Returns the exit code.
int measure(const CalibrationRequest& request, const Launches& launches, const fs::path& work,
            const OutputOptions& output, RankResults& results) {
  Errors errors;
  for (const auto& [ranks, scenarios] : launches) {
    append(errors, bad_points(folder_of(work, ranks), ranks));
  }
  if (!errors.empty()) return report_errors(errors);
  for (const auto& [ranks, scenarios] : launches) {
    const fs::path folder = folder_of(work, ranks);
    if (Errors unmade = make_work_folder(folder.string()); !unmade.empty()) {
      return report_errors(unmade);
    }
    const auto outcome =
        launch_job(text_of(request, scenarios, ranks, folder.string()),
                   (folder / "job.json").string(), static_cast<int>(ranks), {}, output);
    if (!outcome) return report_errors(outcome.error());
    if (const int code = report_outcome(*outcome, output, "the calibration"); code != kOk) {
      note(output, "run it again: finished points are not measured twice");
      return code;
    }
    results.begin_launch();
    for (std::int64_t r = 0; r < ranks; ++r) {
      results.read(folder / file_of(r, "json"), errors);
    }
  }
  return errors.empty() ? static_cast<int>(kOk) : report_errors(errors);
}

}  // namespace

Errors make_work_folder(const std::string& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (!failed) return {};
  return {{ErrorCode::kIo, fmt::format("cannot be made: {}", failed.message()), folder, "-o",
           hint_of_failed_write(failed.value(), "name a profile in a folder that can be written")}};
}

Job job_of(const CalibrationRequest& request, std::vector<SortedJson> scenarios,
           const std::string& folder) {
  Job out = job_of("calibrate", request.folders, folder);
  out.scenarios = std::move(scenarios);
  out.journal = out.results;
  out.budget_s = request.budget_s;
  out.grid = request.grid;
  out.target_half_width = request.target_half_width;
  return out;
}

int calibrate(const CalibrationRequest& request, const OutputOptions& output) {
  Errors errors;
  const auto launches = by_ranks(request.scenarios, request.folders, errors);
  if (!errors.empty()) return report_errors(errors);
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
  const int code = measure(request, launches, work, output, results);
  if (code != kOk) return code;
  measurements.host_memory = results.host_memory();
  results.move_to(measurements.operations, measurements.collectives);
  const auto profile = make_cpu_profile(measurements, fs::path(request.profile).stem().string());
  if (!profile) return report_errors(profile.error());
  if (10 * profile->unrepeated.size() > measurements.operations.size()) {
    note(output, fmt::format("warning: {} of {} operations took other times in one half of the run "
                             "than in the other, {} for example: the machine was busy. They get "
                             "their medians; calibrate again when it is quiet",
                             profile->unrepeated.size(), measurements.operations.size(),
                             profile->unrepeated.front()));
  }
  if (auto written = write_or_keep(request.profile, profile->text); !written) {
    return report_errors(written.error());
  }
  std::error_code ignored;
  if (!request.keeps_journal) fs::remove_all(work, ignored);
  return kOk;
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
