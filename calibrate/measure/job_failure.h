// SPDX-License-Identifier: Apache-2.0
// A rank's job as it meets its machine: what goes wrong becomes a failure that the launcher hears.
#pragma once

#include <stdexcept>
#include <string>

#include "calibrate/protocol/job.h"
#include "calibrate/protocol/journal.h"
#include "core/json_fwd.h"
#include "core/result.h"
#include "launch/rank_report.h"

namespace stepcast {

struct Scenario;

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

// Throws JobFailure.
Scenario read_job_scenario(const Job& job, const SortedJson& stated);
// Both throw JobFailure when writing fails. rank-N.json:
void write_result(const Job& job, int rank, const Json& result);
void append(Journal& journal, const JournalPoint& point);

}  // namespace stepcast
