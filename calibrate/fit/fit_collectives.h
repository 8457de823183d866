// SPDX-License-Identifier: Apache-2.0
// From published nccl-tests tables to the shipped curves of kernel times
// (calibrate/published/collectives.json -> calibrate/profiles/collectives.json). Takes the host's
// launches out and leaves out what the host, not the GPUs, decided (docs/collectives.md,
// "Sources").
#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "core/result.h"
#include "cost/collective_curve.h"

namespace stepcast {

// How a test launched its kernels: a process or thread per GPU, one thread for all of them, or one
// that launches and waits.
enum class Launch { kOwn, kShared, kSerial };

// Leaves of `samples` what the GPUs decided, and returns the launch that it took off each.
Seconds remove_host(const MeasuredGroup& measured, Launch launch,
                    std::vector<CollectiveSample>& samples);

// The text of the profile: the same bytes for the same tables.
Result<std::string> fit_collective_curves(JsonDocument& published);

}  // namespace stepcast
