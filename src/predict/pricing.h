// SPDX-License-Identifier: Apache-2.0
// What prices a scenario whatever its layout: the device's profile, its kernels, its collectives.
// Read once, for one forecast or for many; nothing in it changes, so threads may share it.
#pragma once

#include <memory>

#include "core/result.h"
#include "cost/collective_cost.h"
#include "cost/kernel_cost.h"
#include "layout/scenario.h"

namespace stepcast {

struct Pricing {
  KernelCosts kernels;
  CollectiveCosts collectives;
};

// Of the scenario's cluster, which must outlive it, profile, framework and `training.compile`.
// `own_kernels`: as this project's executor runs it on GPUs (use_own_kernels()).
Result<std::unique_ptr<Pricing>> make_pricing(const Scenario& scenario, const DataFolders& folders,
                                              bool own_kernels = false);

}  // namespace stepcast
