// SPDX-License-Identifier: Apache-2.0
// The nominal price of communication: NCCL's latency and bandwidth for a group of GPUs, before any
// measurement. Measured curves are kept and carried over as what they add to it
// (cost/collective_curve.h; docs/collectives.md, "Price").
#pragma once

#include <string>
#include <vector>

#include "cost/collective_group.h"
#include "cost/nccl_tuner.h"
#include "operation/collective_kind.h"

namespace stepcast {

class CollectiveModel {
 public:
  // The group is a communicator of two or more ranks. A send crosses the network unless
  // `local_pair`. NCCL searches its graph and chooses by what it knows of `tuned_for`: another
  // cluster than the one that moves the bytes shows what its choices make of a change of links.
  CollectiveModel(const ClusterSpec& cluster, const GroupShape& group, bool local_pair,
                  const ClusterSpec& tuned_for);
  CollectiveModel(const ClusterSpec& cluster, const GroupShape& group)
      : CollectiveModel(cluster, group, group.domains == 1, cluster) {}

  // `bandwidth` is what the graph allows at this size, `latency` that of this cluster's wires: the
  // choice rests on NCCL's tables alone, which know one kind of each.
  NcclEstimate estimate(CollectiveKind kind, Bytes size, DataType type) const;

  // An all-to-all of tokens of which one goes to `copies` experts, but only once to each domain and
  // from there once to each rank (DeepEP, HybridEP). `store_sms` and
  // `held_sms`: as struct Collective has them.
  NcclEstimate exchange_once(std::int64_t copies, std::int64_t store_sms,
                             std::int64_t held_sms = 0) const;

  // The algorithm for endless messages, and the payload per second that the graph allows.
  NcclEstimate asymptote(CollectiveKind kind) const;

  // A GPU hands on so much at once, by which curves of different groups are compared: the bytes of
  // one ring step per channel, all that leaves it in an all-to-all, else the message per channel.
  Bytes step(CollectiveKind kind, Algorithm asymptotic, Bytes size) const;

  // The members of the fullest domain, as a group of their own.
  CollectiveModel inside() const;

  const NcclGraph& graph() const { return graph_; }
  const GroupShape& group() const { return group_; }

 private:
  NcclEstimate as_measured(CollectiveKind kind, NcclEstimate choice, Bytes size) const;
  NcclEstimate all_to_all() const;
  NcclEstimate send(Bytes size) const;
  BytesPerSecond network_share() const;  // of a domain
  Seconds wires(const NcclEstimate& estimate) const;
  Seconds between_sites(CollectiveKind kind, const NcclEstimate& estimate) const;

  const ClusterSpec& cluster_;
  const ClusterSpec& tuned_for_;
  GroupShape group_;
  NcclGraph graph_;
  bool local_pair_;
};

}  // namespace stepcast
