// SPDX-License-Identifier: Apache-2.0
// Communication between ranks that are processes on processors: rings in group order (all-reduce as
// reduce-scatter and all-gather), chain broadcast, pairwise all-to-all, single messages. Prices
// come from the profile's curves; a placement that was not measured is priced from the graph
// (docs/collectives.md, "Processes over MPI").
#pragma once

#include <span>
#include <vector>

#include "cost/collective_cost.h"
#include "cost/mpi_curve.h"

namespace stepcast {

class MpiCollectives {
 public:
  // The cluster must outlive this.
  MpiCollectives(const Cluster& cluster, std::vector<MpiCurve> curves)
      : cluster_(cluster), curves_(std::move(curves)) {}

  // `members` has two or more devices in group order; for a send, the sender and the receiver.
  CollectivePrice price(CollectiveKind kind, Bytes size, std::span<const DeviceId> members) const;
  std::vector<LinkLoad> loads(CollectiveKind kind, std::span<const DeviceId> members) const;

 private:
  // The curve of this placement; null when there is none.
  const MpiCurve* find(CollectiveKind kind, std::span<const DeviceId> members) const;

  const Cluster& cluster_;
  std::vector<MpiCurve> curves_;
};

}  // namespace stepcast
