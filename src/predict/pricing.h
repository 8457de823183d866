// SPDX-License-Identifier: Apache-2.0
// The prices of a scenario that do not depend on its layout: the device's profile, its kernels, its
// collectives. They are read once, for one forecast or many, and never change, so threads may share
// them.
#pragma once

#include <memory>
#include <vector>

#include "cluster/repeated_units.h"
#include "core/result.h"
#include "cost/collective_cost.h"
#include "cost/kernel_cost.h"
#include "predict/measured_errors.h"

namespace stepcast {

struct DataFolders;
struct Scenario;

struct Pricing {
  KernelCosts kernels;
  CollectiveCosts collectives;
  MeasuredErrors errors;
  RepeatedUnits units;  // of the cluster
  std::vector<std::unique_ptr<Pricing>> other_jobs;
  std::unique_ptr<CollectiveCosts> between;  // islands, on all of them; null: there is one
};

// Prices for the scenario's cluster (which must outlive them), profile, framework and
// `training.compile`. With `own_kernels` they are those of this project's executor on GPUs
// (use_own_kernels()). NCCL chooses by `tuned_for`; null: by the scenario's cluster.
Result<std::unique_ptr<Pricing>> make_pricing(const Scenario& scenario, const DataFolders& folders,
                                              bool own_kernels = false,
                                              const ClusterSpec* tuned_for = nullptr);

}  // namespace stepcast
