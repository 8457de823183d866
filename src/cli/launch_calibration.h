// SPDX-License-Identifier: Apache-2.0
// A calibration of this machine: ranks measure what the forecasts of some scenarios need, and a
// profile is made of it.
#pragma once

#include <string>
#include <vector>

#include "calibrate/protocol/job.h"
#include "cli/session.h"
#include "core/json_fwd.h"

namespace stepcast::cli {

struct CalibrationRequest {
  std::vector<std::string> scenarios;  // texts of scenario files
  DataFolders folders;
  std::string profile;   // the file to write; PROFILE.journal beside it holds what is finished
  double budget_s = 60;  // of the operations of each scenario; a 60th for a size of a transfer
  double target_half_width = 0.01;  // of each median's 95 % interval, of the median
  bool grid = true;                 // also shapes around the needed ones
  bool keeps_journal = false;       // also when it has ended well
  int ranks = 1;                    // of GPUs: that also communicate
  bool registered_buffers = false;  // in memory that NCCL has registered
};

// Makes it, for a calibration's files; the error is -o's.
Errors make_work_folder(const std::string& folder);

// Its results and its journal are in `folder`.
Job job_of(const CalibrationRequest& request, std::vector<SortedJson> scenarios,
           const std::string& folder);

// Writes the profile, or says on standard error why there is none; returns the exit code. After an
// error the journal stays: the next calibration to the same file goes on from it.
int calibrate(const CalibrationRequest& request, const OutputOptions& output);

// Asks on behalf of another command: what one scenario needs and no more.
CalibrationRequest request_for(const std::string& scenario, const DataRoot& data,
                               const std::string& profile_path, double budget_s);

}  // namespace stepcast::cli
