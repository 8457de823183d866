// SPDX-License-Identifier: Apache-2.0
// Fits grouped products to those of a training step, in all three roles: Transformer Engine runs
// one dense product for each expert, several at a time.
#pragma once

#include "calibrate/fit/fit_error.h"
#include "calibrate/fit/published.h"
#include "cluster/accelerator.h"
#include "cost/profile.h"

namespace stepcast {

struct ExpertProductCurve {
  GroupedFit fit;
  FitError form;
  FitError held_out;  // of shapes that no fit saw; without any, that of the form
};

// `dense` is the form of the device's products.
ExpertProductCurve fit_expert_products(const Accelerator& accelerator,
                                       const ExpertProductTable& table, const GemmFit& dense);

}  // namespace stepcast
