// SPDX-License-Identifier: Apache-2.0
// Files that launch a scenario: settings of a framework, scripts and manifests that start it, and
// the table of ranks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "layout/scenario.h"
#include "recipes/kubernetes.h"

namespace stepcast {

enum class ExportTarget {
  kMegatron,    // a script with the flags of Megatron-LM
  kDeepSpeed,   // ds_config.json
  kTorchtitan,  // torchtitan.toml
  kTorchrun,    // a script, and the framework's settings
  kSlurm,       // a batch script, and the framework's settings
  kKubernetes,  // a manifest that holds both
  kRankMap,
};

std::vector<std::string> export_target_names();  // in the order of the enumerators

struct ExportOptions {
  PodJob pod_job = PodJob::kJobSet;
  std::string image = "registry.example/training:latest";
  bool rank_map_as_json = false;
};

struct Exported {
  std::vector<LaunchFile> files;
  std::string framework;         // "Megatron-LM"; empty for the rank map
  std::vector<Setting> remarks;  // keys without a word in the framework's settings
};

// `stated` is the scenario as its file and flags say it (JSON). Errors name the key: a framework
// that the target does not launch, a value that the framework has no word for or refuses.
Result<Exported> export_scenario(const Scenario& scenario, const std::string& stated,
                                 ExportTarget target, const ExportOptions& options,
                                 const DataFolders& folders);

}  // namespace stepcast
