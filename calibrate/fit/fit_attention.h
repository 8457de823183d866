// SPDX-License-Identifier: Apache-2.0
// Fits the attention form of one kernel generation to published charts and tables.
#pragma once

#include <vector>

#include "calibrate/fit/fit_error.h"
#include "calibrate/fit/published.h"
#include "cluster/accelerator.h"
#include "cost/profile.h"

namespace stepcast {

// A point as time on the device whose form is fitted.
struct AttentionMeasurement {
  AttentionPass pass;
  AttentionSample sample;  // of a forward or backward pass: its fraction of the dense peak
  double seconds;
  bool short_run = false;  // of an inference engine's call, its cache of keys and values included
};

// The FLOPs of the passes that the point counts.
double flops_of(const AttentionMeasurement& point);

// Points of `table` on `accelerator`; `scale` turns rates of the table's device into its rates.
std::vector<AttentionMeasurement> attention_measurements(const AttentionTable& table,
                                                         const Accelerator& accelerator,
                                                         double scale);
std::vector<AttentionMeasurement> held_out_measurements(const AttentionTable& table,
                                                        const Accelerator& accelerator);

struct AttentionCurve {
  AttentionFit fit;
  FitError form;
  FitError held_out;     // each point left out once
  FitError other_sizes;  // of form and samples, on points of short runs that no fit saw
  std::vector<AttentionSample> samples;  // of the kernel alone
};

// Pulls the shape towards `family`, which supplies what the points do not show (a chart at one
// occupancy does not show how occupancy matters).
AttentionCurve fit_attention(const Accelerator& accelerator,
                             const std::vector<AttentionMeasurement>& points,
                             const AttentionFit& family);

// Points of short runs give the forward pass, its shape and its rate; those of a step, if any, the
// backward pass and what a step costs more. `unseen` are of short runs too.
AttentionCurve fit_attention_short_runs(const Accelerator& accelerator,
                                        const std::vector<AttentionMeasurement>& points,
                                        const std::vector<AttentionMeasurement>& unseen,
                                        const AttentionFit& family);

}  // namespace stepcast
