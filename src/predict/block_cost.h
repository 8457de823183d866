// SPDX-License-Identifier: Apache-2.0
// Prices of operations and of whole passes of blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cost/collective_cost.h"
#include "cost/kernel_cost.h"
#include "predict/priced_operation.h"

namespace stepcast {

struct CollectiveCall;
struct Scenario;

// A group of ranks whose collectives run inside blocks, as it lies in the cluster.
struct GroupPlacement {
  AxisGroup group;
  std::vector<DeviceId> devices;
};

// A GPU that computes the passes of a rank, or those of a rank that it meets inside them.
struct PassDevice {
  const KernelCosts* kernels;
  double speed = 1;
};

// Prices operations for one placement of the groups that communicate inside blocks.
class BlockCosts {
 public:
  BlockCosts(const Scenario& scenario, const KernelCosts& kernels,
             const CollectiveCosts& collectives);

  // The groups of the rank that is priced, and the links that they share with their siblings. In a
  // group that is not among them a rank is alone, and its collectives cost nothing.
  void use_groups(std::vector<GroupPlacement> groups,
                  std::shared_ptr<const SiblingLinks> links = nullptr) {
    groups_ = std::move(groups);
    links_ = std::move(links);
  }

  // The rank's own device, and the others of those that it meets inside passes, where these are
  // not all alike: in passes the rank waits for the slowest of them, kernel by kernel.
  void use_devices(std::vector<PassDevice> devices);

  // Kernels of attention take so many times as long: the rank has the longest documents
  // (layout/packed_documents.h).
  void carry_attention(double load) { attention_load_ = load; }

  RunCost price(const std::vector<Operation>& operations) const;  // replayed (block_replay.h)
  std::vector<PricedOperation> price_each(const std::vector<Operation>& operations) const;
  Seconds launch_collective() const;
  // One of its pieces, with the copies that the host makes for it.
  Seconds launch_collective(const CollectiveCall& call) const;
  Seconds launch_copy() const;  // between device and host

 private:
  PricedOperation price(const Operation& operation) const;
  RunCost price_kernel(const KernelPrice& alone, const Operation& operation) const;
  KernelPrice price_on(const PassDevice& device, const Operation& operation) const;
  void wait_for_slowest(const Operation& operation, Curve curve, RunCost& cost) const;
  Seconds host_beside(const Operation& operation) const;
  bool in_graph(const Operation& operation) const;  // a CUDA graph launches it
  PricedOperation price_collective(const Operation& operation, const Collective& collective) const;
  SiblingFlow siblings_of(const Collective& collective, const CollectivePrice& price) const;
  const GroupPlacement* placement(AxisGroup group) const;  // null: the rank is alone
  void wait_for_last(std::vector<PricedOperation>& operations) const;
  void wait_for_reads(std::vector<PricedOperation>& operations) const;
  // A product and a collective that can run in pieces beside each other (docs/cost-models.md,
  // "Tensor-parallel overlap").
  struct SplitProduct {
    std::size_t moved, computed;  // places of both in the pass
    Seconds computing, moving;    // of all pieces; `moving`: only what computing does not hide
    void apply(std::span<PricedOperation> operations) const;
  };
  std::vector<SplitProduct> find_splits(std::span<const PricedOperation> operations) const;
  std::optional<SplitProduct> split_product(const Collective& collective,
                                            std::span<const PricedOperation> operations,
                                            std::size_t moved, std::size_t computed) const;
  bool is_best(const SplitProduct& split, std::span<const SplitProduct> splits,
               std::span<const PricedOperation> operations) const;
  std::vector<PricedOperation> shortest(const std::vector<PricedOperation>& whole,
                                        std::span<const SplitProduct> splits) const;
  void settle_all(std::span<PricedOperation> operations) const;
  void finish(std::vector<PricedOperation>& operations) const;
  Seconds sum_of_pieces(const Collective& collective, std::int64_t members) const;
  void block_host(RunCost& cost, std::int64_t launches) const;
  double held_by(const CollectivePrice& price) const;

  const Scenario& scenario_;
  const KernelCosts& kernels_;
  const CollectiveCosts& collectives_;
  const HostFit& host_;
  double attention_load_ = 1;
  std::vector<PassDevice> devices_;  // its own first
  FlopsPerSecond peak_;              // dense, of the precision of training
  std::vector<GroupPlacement> groups_;
  std::shared_ptr<const SiblingLinks> links_;
};

}  // namespace stepcast
