// SPDX-License-Identifier: Apache-2.0
// Fits grouped products to measured ones, in all three roles.
#pragma once

#include <functional>
#include <vector>

#include "calibrate/fit/fit_error.h"
#include "cluster/accelerator.h"
#include "cost/profile.h"
#include "operation/expert_parts.h"

namespace stepcast {

struct TimedGroupedGemm {
  GroupedGemm work;
  double seconds;
};

struct GroupedProductCurve {
  GroupedFit fit;
  FitError form;
  FitError held_out;  // of each product under a fit to the others; 0 of fewer than two
};

// The form of a device's dense products of one type.
using DenseForm = std::function<GemmFit(DataType)>;

// At least one product; of fewer than eight only the rate and the time of a group are fitted.
GroupedProductCurve fit_grouped_products(const Accelerator& accelerator,
                                         const std::vector<TimedGroupedGemm>& products,
                                         const DenseForm& dense);

std::vector<double> grouped_log_ratios(const GroupedFit& trial, const Accelerator& accelerator,
                                       const std::vector<TimedGroupedGemm>& products,
                                       const DenseForm& dense);

}  // namespace stepcast
