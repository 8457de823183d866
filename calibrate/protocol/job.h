// SPDX-License-Identifier: Apache-2.0
// Tells a rank program what to do: one JSON file that all ranks read, and a folder that each writes
// its results to (docs/formats/validation.md, "Job").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/json_fwd.h"
#include "core/json_tree.h"
#include "core/result.h"
#include "layout/data_folders.h"
#include "program/executable.h"

namespace stepcast {

struct Rows;  // core/rows.h

struct Job {
  std::int64_t format = 1;
  std::string task;                    // "run" or "calibrate"; of stepcast-gpu also "devices"
  std::optional<SortedJson> scenario;  // of a run
  std::vector<SortedJson> scenarios;   // of a calibration
  DataFolders data;
  std::string results;  // folder
  // stepcast-gpu has as many processes with one GPU each, that communicate; nothing: of the host.
  std::optional<std::int64_t> gpus;
  std::uint64_t seed = 1;

  // run
  Backend backend = Backend::kCpu;
  std::string schedule;  // CSV of the order that was forecast; "": the schedule's own
  // This rank of the layout alone, in one process: transfers are left out, nothing is compared, and
  // its results are the file of this rank. Nothing: every rank of the layout runs.
  std::optional<std::int64_t> rank;
  std::int64_t warmup = 2, steps = 10;
  std::int64_t numerics_steps = 3;  // compared with one rank; 0: not checked
  bool check_numerics = true;

  // calibrate
  double budget_s = 60;  // of each scenario's operations; a 60th for a size of a transfer
  double target_half_width = 0.01;  // of each median's interval, of the median
  bool grid = true;                 // also shapes around them, for interpolation
  bool shares_cores = false;        // more ranks than cores: a bound rank cannot tell
  bool registered_buffers = false;  // of the library that they communicate by
  std::string journal;              // folder: what is finished, so that a killed run goes on

  // GPUs take the kernels that this names (cuda::attention_settings()).
  std::string attention = "fastest";

  bool is_run() const { return task == "run"; }
  bool is_calibration() const { return task == "calibrate"; }
  bool on_gpus() const { return gpus.has_value(); }
  bool checks_numerics() const { return check_numerics && numerics_steps > 0 && !rank; }

  static Rows fields();
};

Result<Job> read_job(JsonDocument& document);
Result<Job> load_job(const std::string& file);
std::string job_text(const Job& job);

}  // namespace stepcast
