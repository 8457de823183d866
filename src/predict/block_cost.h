// SPDX-License-Identifier: Apache-2.0
// The price of a run of blocks as one macro activity. A run of kernels that the host queues ends at
// max(s + gpu, h + floor), s = when the stream is free, h = when the host starts issuing: exact in
// (max, +) algebra, and runs compose associatively (docs/design/005-macro-activities.md).
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "cost/collective_cost.h"
#include "cost/kernel_cost.h"
#include "program/program.h"

namespace stepcast {

struct RunCost {
  Seconds gpu;    // kernels and the collectives among them back to back
  Seconds floor;  // max over kernels of (host time to issue up to it + kernels from it on)
  Seconds host;   // to issue all

  Seconds core_idle;  // of `gpu`, that a rank on a processor leaves its core to others

  // Parts of `gpu`.
  Seconds compute, recompute, tensor_parallel, optimizer;
  Seconds gemm, attention, memory_bound;  // of `compute`
  Flops flops;                            // executed, attention as the kernel counts it
  Jitter jitter;                          // of a kernel
  std::array<Seconds, kCurves> by_curve{};
  std::array<Seconds, kProvenances> by_provenance{};

  void append(const RunCost& next);  // `next` runs after this
};

// One operation alone, for expanded replays and operator tables.
struct PricedOperation {
  const Operation* operation;
  RunCost cost;
};

// A group of ranks whose collectives run inside blocks, as it lies in the cluster. `slowdown` >= 1
// where sibling groups share its links.
struct GroupPlacement {
  AxisGroup group;
  std::vector<DeviceId> devices;
  double slowdown = 1;
};

// Prices operations for one placement of the groups that communicate inside blocks.
class BlockCosts {
 public:
  BlockCosts(const Scenario& scenario, const KernelCosts& kernels,
             const CollectiveCosts& collectives);

  // The groups of the rank that is priced. In one that is not among them a rank is alone, and its
  // collectives cost nothing.
  void use_groups(std::vector<GroupPlacement> groups) { groups_ = std::move(groups); }

  RunCost price(const std::vector<Operation>& operations) const;
  std::vector<PricedOperation> price_each(const std::vector<Operation>& operations) const;
  Seconds launch_collective() const;

 private:
  RunCost price(const Operation& operation) const;
  RunCost price_kernel(const KernelPrice& price, Phase phase) const;
  RunCost price_collective(const Collective& collective) const;
  const GroupPlacement* placement(AxisGroup group) const;  // null: the rank is alone
  void wait_for_last(std::vector<PricedOperation>& operations) const;

  const Scenario& scenario_;
  const KernelCosts& kernels_;
  const CollectiveCosts& collectives_;
  const HostFit& host_;
  std::vector<GroupPlacement> groups_;
};

}  // namespace stepcast
