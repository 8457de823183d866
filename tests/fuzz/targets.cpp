// SPDX-License-Identifier: Apache-2.0
// The table of all targets.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "cluster/cluster.h"
#include "core/json_tree.h"
#include "fuzz/readers.h"
#include "fuzz/target.h"
#include "layout/data_folders.h"
#include "places.h"

namespace stepcast::fuzz {
namespace {

constexpr Target kTargets[] = {
    {"json", read_any_json, 4096, "json"},
    {"override", override_keys, 4096, "scenario"},
    {"toml", read_toml, 4096, "toml"},
    {"yaml", read_yaml, 4096, "yaml"},
    {"shell", read_script, 4096, "shell"},
    {"import", import_settings, 8192, "import"},
    {"model", read_model_config, 4096, "model"},
    {"cluster", read_topology, 4096, "cluster"},
    {"nccl_topology", read_nccl_topology, 4096, "nccl_topology"},
    {"scenario", forecast_scenario, 4096, "scenario"},
    {"settings", forecast_settings, 2048, "scenario"},
    {"run", forecast_run, 2048, "scenario"},
    {"nccl_tests", import_collectives, 8192, "nccl_tests"},
    {"tables", import_kernel_tables, 8192, "tables"},
    {"trace", import_profiler_trace, 8192, "trace"},
    {"profile", read_cost_profile, 8192, "profile"},
    {"journal", read_points, 8192, "journal"},
    {"job", read_rank_job, 4096, "job"},
    {"rank_file", read_rank_results, 8192, "rank_file"},
    {"rank_results", read_calibrated_rank, 8192, "rank_results"},
    {"rank_line", read_line_of_rank, 1024, "rank_line"},
    {"schedule", read_schedule, 2048, "schedule"},
    {"log", read_log, 8192, "log"},
    {"goal", read_goal_schedule, 4096, "goal"},
    {"chakra", read_chakra_trace, 4096, "chakra"},
    {"prices", read_price_list, 4096, "prices"},
    {"suite", read_recorded_suite, 8192, "suite"},
    {"baseline", read_check_baseline, 4096, "baseline"},
    {"validation_baseline", read_run_baseline, 4096, "baseline"},
};

}  // namespace

std::span<const Target> targets() { return kTargets; }

const DataFolders& data_folders() {
  static const std::string root = source_folder();
  static const DataFolders folders{root + "/models", root + "/topologies",
                                   root + "/calibrate/profiles"};
  return folders;
}

const Cluster& some_cluster() {
  static const Cluster cluster = [] {
    const auto held = JsonDocument::from(SortedJson("dgx-h100x2"), "cluster");
    return read_cluster(held->root(), data_folders().topologies);
  }();
  return cluster;
}

void say(const Errors& errors) {
  for (const Error& error : errors) {
    if (to_string(error).empty()) std::abort();  // an error without a word
  }
}

const Target* target_named(std::string_view name) {
  const auto found = std::find_if(std::begin(kTargets), std::end(kTargets),
                                  [&](const Target& target) { return name == target.name; });
  return found == std::end(kTargets) ? nullptr : &*found;
}

const Target* target_of_words(int count, char** words) {
  constexpr std::string_view kFlag = "--target=";
  const Target* chosen = nullptr;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--list") {
      for (const Target& target : kTargets) {
        std::printf("%s %zu %s\n", target.name, target.most_bytes, target.dictionary);
      }
      std::exit(0);
    }
    if (word.starts_with(kFlag)) chosen = target_named(word.substr(kFlag.size()));
  }
  if (chosen == nullptr) {
    std::fprintf(stderr, "name a target with --target=NAME; --list prints their names\n");
    std::exit(2);
  }
  return chosen;
}

}  // namespace stepcast::fuzz
