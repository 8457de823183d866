// SPDX-License-Identifier: Apache-2.0
// torchtitan's settings, both ways: the TOML files of its releases up to 0.2 and the JSON that
// `job.print_config` writes. Keys: pytorch/torchtitan, torchtitan/config/job_config.py;
// torchtitan/distributed/pipeline_parallel.py (2025).
#pragma once

#include <string>
#include <vector>

#include "recipes/imported_scenario.h"
#include "schedule/schedule_kind.h"

namespace stepcast {

struct Scenario;

std::string write_torchtitan(const Scenario& scenario, const std::vector<Setting>& remarks,
                             const std::string& models_folder);
ImportedScenario read_torchtitan(const ImportInput& input);
Errors check_torchtitan(const Scenario& scenario);

// TOML as the JSON of the same tables. Errors name the line.
Result<std::string> toml_to_json(const std::string& text, const std::string& file);
std::string json_to_toml(const std::string& json);

// A model of torchtitan's own registry and the shipped model of the same shape.
struct TorchtitanModel {
  const char* name;
  const char* flavor;
  const char* stepcast;
};
const std::vector<TorchtitanModel>& torchtitan_models();

// Schedules by both names.
struct TorchtitanSchedule {
  const char* torchtitan;
  ScheduleKind schedule;
  bool several_chunks;  // two stages per rank unless the file says otherwise
};
const std::vector<TorchtitanSchedule>& torchtitan_schedules();

// fp8, by the converter of torchao that makes it and the name of its recipe there. The first row of
// a converter is its default.
struct TorchtitanFp8 {
  std::string_view converter;
  std::string_view torchtitan;
  std::string_view stepcast;
  bool gathers = false;  // FSDP may gather it in fp8
};
inline constexpr TorchtitanFp8 kTorchtitanFp8[] = {{"float8", "tensorwise", "current", true},
                                                   {"float8", "rowwise", "rowwise"},
                                                   {"mx", "mxfp8_cublas", "mxfp8"}};

}  // namespace stepcast
