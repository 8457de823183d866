// SPDX-License-Identifier: Apache-2.0
// Files that launch a scenario: settings of a framework, scripts and manifests that start it, the
// table of ranks, and the order of each stage's passes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "recipes/kubernetes.h"

namespace stepcast {

struct DataFolders;
struct Scenario;

// Each framework has its own files; scripts and manifests hold them; ranks and passes are tables.
std::vector<std::string> export_target_names();
// The table of passes: the one target that may need the order that prices give.
inline constexpr const char* kScheduleTarget = "schedule";

// Targets that launch a scenario of this framework and mode, the usual one first; none: it has no
// launch files.
std::vector<std::string> launch_targets(const Scenario& scenario);

struct ExportOptions {
  PodJob pod_job = PodJob::kJobSet;
  std::string image = "registry.example/training:latest";
  bool rank_map_as_json = false;
};

struct Exported {
  std::vector<LaunchFile> files;
  std::string framework;               // "Megatron-LM"; empty for a table
  std::vector<Setting> remarks;        // keys without a word in the framework's settings
  std::vector<std::string> left_open;  // what a run needs that no scenario says
};

// `stated` is the scenario as its file and flags say it (JSON), `target` one of the names. Errors
// name the key: a framework that the target does not launch, a value that the framework has no word
// for or refuses.
Result<Exported> export_scenario(const Scenario& scenario, const std::string& stated,
                                 const std::string& target, const ExportOptions& options,
                                 const DataFolders& folders);

}  // namespace stepcast
