// SPDX-License-Identifier: Apache-2.0
// Holds what a job works with on one rank of several, and declares what that rank does.
#pragma once

#include <string>

#include "calibrate/measure/job_failure.h"
#include "comm/communicator.h"

namespace stepcast {

struct RankContext {
  const Job& job;
  Communicator& world;
  RankReporter& report;
  std::string host;
};

// True where it is on any rank; called by all of them.
bool on_any_rank(const RankContext& rank, bool here);

// The sum over ranks; called by all of them.
double over_all_ranks(const RankContext& rank, double here);

void calibrate_job(const RankContext& rank);

}  // namespace stepcast
