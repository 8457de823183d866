// SPDX-License-Identifier: Apache-2.0
// A real run of a scenario: the job that stepcast-rank reads (docs/formats/validation.md, "Job"),
// its launch, and what to tell the user when it does not end well.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/protocol/job.h"
#include "cli/session.h"
#include "core/id.h"
#include "launch/launch_outcome.h"
#include "program/executable.h"

namespace stepcast {
struct Scenario;
}  // namespace stepcast

namespace stepcast::cli {

// Seconds after which a run is ended.
struct TimeLimits {
  double total_s = 0;     // 0: never
  double silence_s = 60;  // without a report of any rank
};

struct RunJob {
  const Scenario& scenario;
  std::string stated;  // the scenario as the user gave it, whose cluster the ranks resolve again
  std::string folder;  // for the job and the ranks' files
  std::uint64_t seed = 1;
  int warmup = 2;
  int steps = 10;
  int numerics_steps = 3;  // compared with one rank; 0: none
  TimeLimits limits = {};
  Backend backend = Backend::kCpu;
  std::optional<RankId> alone = {};  // this rank of the layout and no other
};

// stepcast-gpu beside this program, which needs CUDA; STEPCAST_GPU_PROGRAM names another.
std::filesystem::path gpu_program();
// stepcast-rank likewise; the variable STEPCAST_RANK_PROGRAM names another, for tests.
std::filesystem::path rank_program();

// Which kernels attention on GPUs takes, "attention" of a job: the variable STEPCAST_ATTENTION.
std::string attention_wanted();
// A job with absolute folders.
Job job_of(const char* task, const DataFolders& folders, const std::string& results);

// Writes `text` to `file`, runs that job in `ranks` processes, with progress on standard error. An
// error is a launch that cannot be tried.
Result<LaunchOutcome> launch_job(const std::string& text, const std::string& file, int ranks,
                                 const TimeLimits& limits, const OutputOptions& output);
// Does it in `ranks` processes with a GPU each: one alone, several by mpirun.
Result<LaunchOutcome> launch_gpu_job(const std::string& text, const std::string& file, int ranks,
                                     const OutputOptions& output, const TimeLimits& limits = {});

// An error when this build has no stepcast-gpu, which --backend cuda needs. `what` says what is
// then impossible ("measured").
Errors check_gpu_program(const char* what);

// Names of the GPUs that a launch on this machine can use, which stepcast-gpu tells; `folder` takes
// its files. Returns the exit code, reported: no driver and no GPU are errors.
int find_gpus(const DataFolders& folders, const std::string& folder, const OutputOptions& output,
              std::vector<std::string>& found);

// How a launch of stepcast-gpu ended, as report_outcome(): what it says of its job or of the
// machine is an error of the input.
int report_gpu_outcome(const LaunchOutcome& outcome, const OutputOptions& output);

// Writes the job, runs it in a process per rank, or in that of the rank alone, with progress on
// standard error. An error is a launch that cannot be tried.
Result<LaunchOutcome> run_job(const RunJob& job, const DataFolders& folders,
                              const OutputOptions& output);

// Says on standard error how the launch of `what` ended; returns the exit code: 2 when the job or
// the machine is at fault, 1 when a rank died, hung or lost the others.
int report_outcome(const LaunchOutcome& outcome, const OutputOptions& output,
                   const char* what = "the run");

}  // namespace stepcast::cli
