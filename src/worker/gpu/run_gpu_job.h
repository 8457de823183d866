// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/measure/job_failure.h"
#include "comm/device_communicator.h"
#include "launch/rank_report.h"
#include "worker/gpu/device_use.h"

namespace stepcast {

// Runs the job's scenario on this process's GPU. `world`: the ranks of the job, this one `rank` of
// them; null: one alone. `use` was made before this process used any GPU.
void run_gpu_job(const Job& job, int rank, DeviceCommunicator* world, const DeviceUse& use,
                 RankReporter& report);

}  // namespace stepcast
