// SPDX-License-Identifier: Apache-2.0
// Fits grouped products to calls of inference engines, which also route, move and activate tokens.
#pragma once

#include <vector>

#include "calibrate/fit/fit_error.h"
#include "calibrate/fit/published.h"
#include "cluster/accelerator.h"
#include "cost/profile.h"

namespace stepcast {

struct GroupedCurve {
  GroupedFit fit;
  FitError form;
  FitError other_models;  // of models that no fit saw
};

// `dense` is the form of the device's products of that precision, fitted to `samples`. What an
// engine's call does beside its two products (bytes for each routed token and its activation, for
// each token of the batch, and a fixed part) is fitted too, and left out: a step has it as kernels
// of its own.
GroupedCurve fit_grouped(const Accelerator& accelerator, const GroupedTable& table,
                         const GemmFit& dense, const std::vector<GemmSample>& samples);

}  // namespace stepcast
