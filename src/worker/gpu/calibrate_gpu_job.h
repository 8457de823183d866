// SPDX-License-Identifier: Apache-2.0
// Measures the kernels that scenarios need and shapes around them, each alone.
#pragma once

#include "worker/job.h"

namespace stepcast {

// Writes rank-0.json with the kernels, and gpu.json with the machine, into the job's results.
void calibrate_gpu_job(const Job& job, RankReporter& report);

}  // namespace stepcast
