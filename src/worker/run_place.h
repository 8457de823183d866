// SPDX-License-Identifier: Apache-2.0
// A real run takes place here: what a rank of it computes on, and how it hears of the others.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "calibrate/measure/job_failure.h"
#include "execute/device.h"
#include "validate/rank_file.h"

namespace stepcast {

struct RunPlace {
  const Job& job;
  RankReporter& report;
  std::string host;
  RankId rank;
  DeviceCommunicator* world;  // null: one rank, or one of several alone
  // Reduces numbers of the host, in place, over all ranks.
  std::function<void(std::span<float>, Reduction)> all_reduce;
  std::function<std::unique_ptr<Device>()> device;
  // Makes the device of the rank that the numerics are held against; empty: as for the others.
  std::function<std::unique_ptr<Device>()> reference_device = {};
  // Marks around operations take the host's time: they get steps of their own.
  bool marks_apart = false;
  // How long to wait for an operation between ranks, from its start; on a GPU it is queued long
  // before it begins.
  std::chrono::seconds patience{60};
  // Adds facts about the device to the result; may be empty.
  std::function<void(Device&, RankFile&)> add_facts = {};
};

// Trains the job's scenario: first a few steps whose losses and parameters are held against one
// rank, then warm-up, then the measured steps. Writes rank-N.json. Throws JobFailure.
void run_job(const RunPlace& place);

}  // namespace stepcast
