// SPDX-License-Identifier: Apache-2.0
// Files that launch a scenario: settings of its framework, scripts and manifests that start it, the
// table of ranks (docs/export.md).
//
// Example:
//   const auto data = stepcast::api::Data::open(folder);
//   if (!data) return data.error();
//   const auto scenario = stepcast::api::Scenario::parse(*data, R"({
//     "stepcast": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100",
//     "training": {"global_batch": 64, "sequence_length": 4096}, "layout": {"tp": 2, "pp": 2}})");
//   if (!scenario) return scenario.error();
//   const auto written = stepcast::api::launch_files(*scenario, "megatron");
//   if (!written) return written.error();
//   for (const stepcast::api::LaunchFile& file : written->files) std::puts(file.name.c_str());
#pragma once

#include <string>
#include <vector>

#include "stepcast/scenario.h"

namespace stepcast::api {

struct LaunchFile {
  std::string name;
  std::string text;
  bool executable = false;
};

struct LaunchFiles {
  std::vector<LaunchFile> files;
  std::vector<std::string> remarks;  // "layout.order=...": keys that the files have no word for
};

// Names of targets: frameworks, what holds their files ("slurm"), and tables ("rankmap").
std::vector<std::string> launch_targets();

// Errors: what is wrong with the scenario, a target that there is not or that does not launch the
// scenario's framework, and values that the framework has no word for.
Result<LaunchFiles> launch_files(const Scenario& scenario, const std::string& target);

}  // namespace stepcast::api
