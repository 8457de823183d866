// SPDX-License-Identifier: Apache-2.0
// The task "devices" of stepcast-gpu: what GPUs a launch on this machine can use.
#pragma once

#include "calibrate/measure/job_failure.h"

namespace stepcast {

// Writes devices.json to the job's results: {"devices": ["NVIDIA H200", ...]}, those that
// CUDA_VISIBLE_DEVICES leaves. Throws CudaError (no driver, no GPU) and JobFailure.
void list_gpus(const Job& job);

}  // namespace stepcast
