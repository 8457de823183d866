// SPDX-License-Identifier: Apache-2.0
// Tells a rank program what to do: one JSON file that all ranks read, and a folder that each writes
// its results to.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "calibrate/protocol/journal.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "core/result.h"
#include "launch/rank_report.h"
#include "layout/scenario.h"
#include "program/executable.h"

namespace stepcast {

struct Job {
  std::string task;                    // "run" or "calibrate"; of stepcast-gpu also "devices"
  std::vector<std::string> scenarios;  // JSON texts; "run" has one
  DataFolders data;
  std::string schedule;  // CSV of the order that was forecast; "": the schedule's own
  std::string results;   // folder
  std::uint64_t seed = 1;

  std::int64_t gpus = 1;  // of stepcast-gpu: processes with one each, that communicate

  // run
  Backend backend = Backend::kCpu;
  // This rank of the layout alone, in one process: transfers are left out, nothing is compared, and
  // its results are the file of this rank. Nothing: every rank of the layout runs.
  std::optional<std::int64_t> rank;
  std::int64_t warmup = 2, steps = 10;
  std::int64_t numerics_steps = 3;  // compared with one rank; 0: not checked

  // calibrate
  double budget_s = 60;  // of each scenario's operations; a 60th for a size of a transfer
  double target_half_width = 0.01;  // of each median's interval, of the median
  bool grid = true;                 // also shapes around them, for interpolation
  bool shares_cores = false;        // more ranks than cores: a bound rank cannot tell
  bool registered_buffers = false;  // of the library that they communicate by
  std::string journal;              // folder: what is finished, so that a killed run goes on

  // GPUs take the kernels that this names (cuda::attention_settings()).
  std::string attention = "fastest";
};

Result<Job> read_job(JsonDocument& document);
Result<Job> load_job(const std::string& file);

// A failure that the launcher must hear about.
class JobFailure : public std::runtime_error {
 public:
  JobFailure(RankFailure kind, const std::string& what) : std::runtime_error(what), kind_(kind) {}
  // The machine is to blame when nothing but files is wrong, else the input.
  explicit JobFailure(const Errors& errors);
  RankFailure kind() const { return kind_; }

 private:
  RankFailure kind_;
};

Scenario read_job_scenario(const Job& job, const std::string& text);  // throws JobFailure
// Both throw JobFailure when writing fails. rank-N.json:
void write_result(const Job& job, int rank, const Json& result);
void append(Journal& journal, const JournalPoint& point);

}  // namespace stepcast
