// SPDX-License-Identifier: Apache-2.0
// Prices of every run instruction of every rank class.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "predict/block_cost.h"
#include "predict/symmetry.h"

namespace stepcast {

class RunCosts {
 public:
  RunCosts(const Scenario& scenario, const Program& program, const RankGrid& grid,
           const Symmetry& symmetry, const KernelCosts& kernels,
           const CollectiveCosts& collectives);

  // Of instruction `instruction` of the role of rank class `rank_class`.
  const RunCost& run(std::int32_t rank_class, const Instruction& instruction) const;
  // Its operations one by one, in order.
  std::vector<PricedOperation> operations(std::int32_t rank_class,
                                          const Instruction& instruction) const;
  const Role& role(std::int32_t rank_class) const;
  Seconds launch_collective() const { return launch_collective_; }

 private:
  using Key = std::tuple<std::int32_t, bool, std::int32_t, std::int32_t, std::int32_t>;
  void price_placement(std::int32_t rank_class);

  const Scenario& scenario_;
  const Program& program_;
  const RankGrid& grid_;
  const Symmetry& symmetry_;
  mutable BlockCosts costs_;
  Seconds launch_collective_;
  struct Placement {  // of a tensor-parallel group
    std::vector<DeviceId> devices;
    double slowdown;
  };
  std::vector<std::int32_t> placement_of_;  // by rank class
  std::vector<Placement> placements_;
  std::vector<std::vector<RunCost>> forward_, backward_;  // by placement, block
  mutable std::vector<std::map<Key, RunCost>> runs_;      // by placement
};

}  // namespace stepcast
