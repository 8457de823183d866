// SPDX-License-Identifier: Apache-2.0
// A calibration of this machine's GPU: stepcast-gpu measures the kernels that some scenarios need
// and shapes around them, and a profile is made of it.
#pragma once

#include "cli/launch_calibration.h"

namespace stepcast::cli {

// Writes output.file, which is request.profile; returns the exit code. After an error the journal
// stays, as on the CPU.
int calibrate_gpu(const CalibrationRequest& request, const OutputOptions& output);

}  // namespace stepcast::cli
