// SPDX-License-Identifier: Apache-2.0
#include "cli/validated_run.h"

#include <fmt/format.h>

#include <cstdlib>

#include "calibrate/device_name.h"
#include "cli/launch_calibration.h"
#include "cli/launch_run.h"
#include "layout/scenario.h"

namespace stepcast::cli {
namespace {

// Ranks that mpirun is told to start elsewhere have GPUs that are not this machine's.
bool starts_elsewhere() {
  const char* arguments = std::getenv("STEPCAST_MPIRUN_ARGS");
  return arguments != nullptr && *arguments != '\0';
}

Errors check_gpus(const ValidatedRun& run, const Scenario& scenario,
                  const std::vector<std::string>& gpus) {
  const ClusterSpec& cluster = scenario.cluster.spec;
  Errors errors;
  for (const std::string& gpu : gpus) {
    if (names_device(gpu, cluster.accelerator)) continue;
    errors.push_back({ErrorCode::kIllegal,
                      fmt::format("this machine's GPU is '{}', and the cluster has {}", gpu,
                                  cluster.accelerator.title),
                      "", "cluster", "name a cluster of this machine's GPU"});
    return errors;
  }
  const std::int64_t ranks = run.alone ? 1 : scenario.cluster.gpus();
  if (ranks > static_cast<std::int64_t>(gpus.size()) && !starts_elsewhere()) {
    errors.push_back({ErrorCode::kIllegal,
                      fmt::format("the layout has {} ranks, and this machine {} GPU{}", ranks,
                                  gpus.size(), gpus.size() == 1 ? "" : "s"),
                      "", "--backend cuda", "--rank 0 runs one rank of it alone"});
  }
  return errors;
}

}  // namespace

Errors check_runnable(const ValidatedRun& run, const Scenario& scenario) {
  Errors errors;
  const bool gpus = run.on_gpu();
  const ClusterSpec& cluster = scenario.cluster.spec;
  if (cluster.accelerator.is_cpu() == gpus) {
    errors.push_back(
        {ErrorCode::kIllegal,
         fmt::format("the devices of '{}' are {}, and the backend {} runs on {}", cluster.name,
                     cluster.accelerator.title, gpus ? "cuda" : "cpu",
                     gpus ? "GPUs" : "processors"),
         "", "cluster",
         gpus ? "use a cluster of this machine's GPU"
              : "use {\"base\": \"local\"}, or a cluster whose accelerator is \"cpu\""});
  }
  if (run.alone && run.alone->value >= scenario.cluster.gpus()) {
    errors.push_back({ErrorCode::kBadValue,
                      fmt::format("the layout has no rank {}", run.alone->value), "", "--rank",
                      fmt::format("0 to {}", scenario.cluster.gpus() - 1)});
  }
  const Errors refused = check_executable(scenario, run.backend);
  errors.insert(errors.end(), refused.begin(), refused.end());
  if (gpus) {
    const Errors missing = check_gpu_program("run");
    errors.insert(errors.end(), missing.begin(), missing.end());
  }
  return errors;
}

int look_for_gpus(const ValidatedRun& run, const Scenario& scenario, const DataFolders& folders,
                  const ScratchFolder& scratch, const OutputOptions& output) {
  std::vector<std::string> gpus;
  const int code = find_gpus(folders, scratch.path().string(), output, gpus);
  if (scratch.interrupted() != 0) return 128 + scratch.interrupted();
  if (code != kOk) return code;
  const Errors errors = check_gpus(run, scenario, gpus);
  return errors.empty() ? static_cast<int>(kOk) : report_errors(errors);
}

}  // namespace stepcast::cli
