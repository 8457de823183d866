// SPDX-License-Identifier: Apache-2.0
// Prices of operations and of whole passes of blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "cost/collective_cost.h"
#include "cost/kernel_cost.h"
#include "predict/block_replay.h"

namespace stepcast {

// Prices operations for one kind of tensor-parallel group (its devices), with memory of shapes.
class BlockCosts {
 public:
  BlockCosts(const Scenario& scenario, const KernelCosts& kernels,
             const CollectiveCosts& collectives);

  // `tensor_group`: devices of the rank's tensor-parallel group; `tensor_slowdown` >= 1 where
  // sibling groups share its links.
  void use_tensor_group(std::vector<DeviceId> tensor_group, double tensor_slowdown);

  RunCost price(const std::vector<Operation>& operations) const;  // replayed (block_replay.h)
  std::vector<PricedOperation> price_each(const std::vector<Operation>& operations) const;
  Seconds launch_collective() const;
  Seconds launch_copy() const;  // between device and host

 private:
  RunCost price(const Operation& operation) const;
  RunCost price_kernel(const KernelPrice& price, Phase phase) const;
  RunCost price_collective(const Collective& collective) const;
  void wait_for_last(std::vector<PricedOperation>& operations) const;

  const Scenario& scenario_;
  const KernelCosts& kernels_;
  const CollectiveCosts& collectives_;
  const HostFit& host_;
  std::vector<DeviceId> tensor_group_;
  double tensor_slowdown_ = 1;
};

}  // namespace stepcast
