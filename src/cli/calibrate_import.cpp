// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate_import.h"

#include "calibrate/import/imported.h"
#include "cli/gpu_profile.h"
#include "cli/scenario_flags.h"
#include "cluster/cluster.h"
#include "core/json.h"
#include "core/json_tree.h"

namespace stepcast::cli {
namespace {

// Importing reads only --cluster of the scenario flags. The others would be ignored silently, so
// each is an error.
Errors deaf_flags(const ScenarioFlags& flags) {
  Errors errors;
  for (const auto& value : flags.values) {
    if (!value->option.given() || value->path == "cluster") continue;
    errors.push_back({ErrorCode::kIllegal, "has no effect on an import", "", value->flag,
                      "only --cluster describes the measured machine"});
  }
  if (!flags.sets.empty()) {
    errors.push_back({ErrorCode::kIllegal, "has no effect on an import", "", "--set",
                      "only --cluster describes the measured machine"});
  }
  return errors;
}

Result<ClusterSpec> measured_cluster(const ScenarioFlags& flags, const DataFolders& folders) {
  std::string name;
  for (const auto& value : flags.values) {
    if (value->path == "cluster") name = value->value;
  }
  if (name.empty()) {
    return failure({ErrorCode::kMissingKey, "is not given: what was measured?", "", "--cluster",
                    "a cluster of the measured devices, such as dgx-h100; see: stepcast show "
                    "clusters"});
  }
  const auto document = JsonDocument::from(SortedJson(name), "--cluster");
  const Cluster cluster = read_cluster(document->root(), folders.topologies);
  if (!document->ok()) return failure(document->errors());
  if (cluster.spec.accelerator.is_cpu()) {
    return failure({ErrorCode::kIllegal, "processors are measured, not imported", "", "--cluster",
                    "calibrate --backend cpu"});
  }
  return cluster.spec;
}

}  // namespace

int import_profile(const std::vector<std::string>& files, const ScenarioFlags& flags,
                   const DataFolders& folders, const OutputOptions& output) {
  if (const Errors deaf = deaf_flags(flags); !deaf.empty()) return report_errors(deaf);
  const auto cluster = measured_cluster(flags, folders);
  if (!cluster) return report_errors(cluster.error());
  const auto imported = import_files(files, *cluster);
  if (!imported) return report_errors(imported.error());
  return write_gpu_profile(*imported, *cluster, folders, output);
}

}  // namespace stepcast::cli
