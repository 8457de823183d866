// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate_gpu.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "calibrate/device_name.h"
#include "calibrate/gpu_run.h"
#include "calibrate/measured_on_gpu.h"
#include "cli/gpu_profile.h"
#include "cli/launch_run.h"
#include "cli/rank_results.h"
#include "core/gathered_errors.h"
#include "core/json_tree.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"

namespace stepcast::cli {
namespace {

namespace fs = std::filesystem;
constexpr const char* kAttentionKernel = "stepcast";  // the program's own
constexpr int kMostProcesses = 20;

struct Wanted {
  std::vector<SortedJson> scenarios;
  std::optional<ClusterSpec> cluster;  // of the first; all have its devices
};

Wanted wanted(const CalibrationRequest& request, Errors& errors) {
  Wanted out;
  for (const std::string& text : request.scenarios) {
    SortedJson stated = SortedJson::parse(text);
    stated.erase("profile");  // it is what this is about to make
    const auto document = JsonDocument::from(stated, "scenario");
    const auto scenario = read_scenario(*document, request.folders);
    if (!scenario) {
      append(errors, scenario.error());
      continue;
    }
    const ClusterSpec& cluster = scenario->cluster.spec;
    if (!out.cluster) out.cluster = cluster;
    if (cluster.accelerator.name != out.cluster->accelerator.name) {
      errors.push_back(
          {ErrorCode::kIllegal,
           fmt::format("the scenarios are for {} and for {}: a profile is of one device",
                       out.cluster->accelerator.name, cluster.accelerator.name),
           "", "cluster", "calibrate for one of them at a time"});
    }
    out.scenarios.push_back(std::move(stated));
  }
  return out;
}

std::string text_of(const CalibrationRequest& request, const Wanted& wanted,
                    const std::string& folder) {
  Job out = job_of(request, wanted.scenarios, folder);
  out.gpus = request.ranks;
  out.registered_buffers = request.registered_buffers;
  return job_text(out);
}

int make_profile(const Wanted& wanted, const fs::path& folder, const DataFolders& folders,
                 bool registered, const OutputOptions& output) {
  Errors errors;
  RankResults results;
  results.read(folder / "rank-0.json", errors);
  const auto run = load_gpu_run((folder / "gpu.json").string());
  if (!run) append(errors, run.error());
  if (errors.empty() && !names_device(run->device, wanted.cluster->accelerator)) {
    errors.push_back({ErrorCode::kIllegal,
                      fmt::format("this machine's GPU is '{}', and the cluster has {}", run->device,
                                  wanted.cluster->accelerator.title),
                      "", "cluster", "name a cluster of the GPU that is measured"});
  }
  if (!errors.empty()) return report_errors(errors);
  std::vector<MeasuredOperation> operations;
  std::vector<MeasuredCollective> collectives;
  results.move_to(operations, collectives);
  Imported measured = curves_of(operations, wanted.cluster->accelerator, kAttentionKernel);
  add_collectives(collectives, measured);
  measured.own_run = own_run_of(*run, *wanted.cluster);
  measured.own_run->attention_kernel = kAttentionKernel;
  if (const std::string told = attention_compared(operations); !told.empty()) {
    measured.own_run->machine["attention_compared"] = told;
    measured.remarks.push_back("attention by cuDNN and by own kernels: " + told);
  }
  if (registered && !collectives.empty()) {
    measured.own_run->machine["collective_buffers"] = "registered";
  }
  measured.sources.push_back("calibrated on " + run->device);
  return write_gpu_profile(measured, *wanted.cluster, folders, output);
}

std::uintmax_t size_of_journal(const fs::path& folder) {
  std::error_code none;
  const std::uintmax_t size = fs::file_size(folder / "rank-0.jsonl", none);
  return none ? 0 : size;
}

// A kernel that breaks the GPU, hangs or kills its process is noted in the journal, and another
// process measures the others. Several GPUs are measured together and end together.
Result<LaunchOutcome> launch_until_all_is_tried(const std::string& job, const fs::path& folder,
                                                int ranks, const OutputOptions& output) {
  for (int process = 1;; ++process) {
    const std::uintmax_t before = size_of_journal(folder);
    auto outcome = launch_gpu_job(job, (folder / "job.json").string(), ranks, output);
    if (!outcome || outcome->ok() || ranks > 1 || process == kMostProcesses) return outcome;
    const bool ended = outcome->end == LaunchEnd::kDied || outcome->end == LaunchEnd::kHung ||
                       outcome->end == LaunchEnd::kInternal;
    if (!ended || size_of_journal(folder) <= before) return outcome;
    for (const std::string& warning : outcome->warnings) note(output, "warning: " + warning);
    note(output, fmt::format("warning: {}; another process goes on", outcome->message));
  }
}

}  // namespace

int calibrate_gpu(const CalibrationRequest& request, const OutputOptions& output) {
  Errors errors;
  const Wanted scenarios = wanted(request, errors);
  if (!errors.empty()) return report_errors(errors);
  if (errors = check_gpu_program("measured"); !errors.empty()) return report_errors(errors);
  const fs::path work = request.profile + ".journal";
  const fs::path folder = fs::absolute(work / "gpu");
  if (errors = make_work_folder(folder.string()); !errors.empty()) return report_errors(errors);
  const auto outcome = launch_until_all_is_tried(text_of(request, scenarios, folder.string()),
                                                 folder, request.ranks, output);
  if (!outcome) return report_errors(outcome.error());
  int code = report_gpu_outcome(*outcome, output);
  if (code == kOk) {
    code = make_profile(scenarios, folder, request.folders, request.registered_buffers, output);
  }
  const bool worth_keeping =
      (code != kOk || request.keeps_journal) && fs::exists(folder / "rank-0.jsonl");
  std::error_code ignored;
  if (!worth_keeping) fs::remove_all(work, ignored);
  return code;
}

}  // namespace stepcast::cli
