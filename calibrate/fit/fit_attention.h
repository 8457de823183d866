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
};

// Points of `table` on `accelerator`; `scale` turns rates of the table's device into its rates.
std::vector<AttentionMeasurement> attention_measurements(const AttentionTable& table,
                                                         const Accelerator& accelerator,
                                                         double scale);

struct AttentionCurve {
  AttentionFit fit;
  FitError form;
  FitError held_out;  // each point left out once
};

// Pulls the shape towards `family`, which supplies what the points do not show (a chart at one
// occupancy does not show how occupancy matters).
AttentionCurve fit_attention(const Accelerator& accelerator,
                             const std::vector<AttentionMeasurement>& points,
                             const AttentionFit& family);

}  // namespace stepcast
