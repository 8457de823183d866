// SPDX-License-Identifier: Apache-2.0
// Turns published nccl-tests tables into the shipped curves of kernel times
// (calibrate/published/collectives*.json -> calibrate/profiles/collectives.json). Takes the host's
// launches out and leaves out what the host, not the GPUs, decided (docs/collectives.md,
// "Sources").
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "calibrate/fit/fit_error.h"
#include "core/result.h"
#include "cost/collective_curve.h"

namespace stepcast {

// How a test launched its kernels: a process or thread per GPU, one thread for all of them, or one
// that launches and waits.
enum class Launch { kOwn, kShared, kSerial };

// Leaves of `samples` what the GPUs decided, and returns the launch that it took off each.
Seconds remove_host(const MeasuredGroup& measured, Launch launch,
                    std::vector<CollectiveSample>& samples);

// The error of each size between others, priced by the others; sizes of at least `from`.
FitError held_out_sizes(const MeasuredGroup& measured, const std::vector<CollectiveSample>& samples,
                        Bytes from = Bytes());

struct FittedCollectives {
  struct Curve {
    MeasuredGroup measured;
    std::vector<CollectiveSample> samples;
  };
  std::vector<Curve> curves;
  std::string text;  // of the profile: the same bytes for the same tables
};

// If two tables are of one group, the one that stands first prices it.
Result<FittedCollectives> fit_collective_curves(const std::vector<JsonDocument*>& published);

// The files of `folder` that hold such tables, in the order of their names.
Result<std::vector<std::unique_ptr<JsonDocument>>> published_collectives(const std::string& folder);

}  // namespace stepcast
