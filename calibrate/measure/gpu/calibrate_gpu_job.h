// SPDX-License-Identifier: Apache-2.0
// Measures the kernels that scenarios need and shapes around them, each alone; between several GPUs
// also collectives.
#pragma once

#include "calibrate/measure/gpu/gpu_ranks.h"
#include "calibrate/measure/job_failure.h"

namespace stepcast {

// Writes rank-0.json with kernels and collectives, and gpu.json with the machine, into the job's
// results. Other ranks write their journals alone.
void calibrate_gpu_job(const Job& job, GpuRanks& ranks, RankReporter& report);

}  // namespace stepcast
